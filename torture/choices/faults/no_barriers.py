"""A filesystem sends its disk no flush (ext4(5), barrier=0)."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="no-barriers",
    layer=Layer.CLIENT,
    words="ext4 without barriers",
    cell="iscsi-standard-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    bound_to=frozenset({"filesystem"}),
    in_client="mount -o remount,barrier=0 /mnt",
)
