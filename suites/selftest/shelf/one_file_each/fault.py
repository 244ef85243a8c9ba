"""A NAS whose pool gets no command; it is planted, and no check could see it."""

from __future__ import annotations

from torture.choices.experiments.protocol import Fault, Layer, Sight

EXPERIMENT = Fault(
    name="dummy-fault",
    layer=Layer.NAS,
    words="a dummy fault",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    in_nas="plant-dummy",
)
