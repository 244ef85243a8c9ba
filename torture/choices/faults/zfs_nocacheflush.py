"""ZFS never flushes its disks: a tunable that forums recommend (zfs(4))."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zfs-nocacheflush",
    layer=Layer.ZFS,
    words="zfs_nocacheflush=1",
    cell="iscsi-always-noslog-btrfs-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    amounts_to={"zfs_nocacheflush": "nocacheflush"},
    in_nas="echo 1 > /sys/module/zfs/parameters/zfs_nocacheflush",
)
