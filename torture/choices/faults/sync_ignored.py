"""sync=standard has silently become disabled."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="sync-ignored",
    layer=Layer.ZFS,
    words="sync=standard is silently disabled",
    cell="iscsi-standard-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    amounts_to={"sync": "disabled"},
    in_nas="zfs set sync=disabled tank/vm",
)
