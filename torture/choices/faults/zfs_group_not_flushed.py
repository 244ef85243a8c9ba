"""ZFS without the flush between a group's writes and its uberblock (`vdev_config_sync`).

An uberblock may then reach a disk before the tree below it. A commit of the intent log in between
flushes the same disk, so some groups are covered all the same.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zfs-group-not-flushed",
    layer=Layer.ZFS,
    words="a transaction group is not flushed before its uberblock",
    cell="iscsi-standard-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    zfs="2.3.9+group_not_flushed",
)
