"""sync=always that has silently become standard."""

from __future__ import annotations

from torture.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="sync-weakened",
    layer=Layer.ZFS,
    words="sync=always is silently standard",
    cell="iscsi-always-noslog-ext4-nasonly",
    seen_by=Sight.AUDIT,
    cuts=1,
    in_nas="zfs set sync=standard tank/vm",
)
