"""ZFS without the flush after its uberblocks (`vdev_uberblock_sync_list`, vdev_label.c).

The next group's blocks may then be on disk before the last group's uberblock. They may overwrite
freed blocks that the newest uberblock on disk still refers to. No check of a single cut is likely
to meet that; the audit checks each group for it.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zfs-uberblock-not-flushed",
    layer=Layer.ZFS,
    words="uberblocks are not flushed",
    cell="iscsi-standard-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    zfs="2.3.9+uberblock_not_flushed",
)
