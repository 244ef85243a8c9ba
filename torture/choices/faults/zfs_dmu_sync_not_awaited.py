"""ZFS whose log blocks do not wait for the data they point to (`zil_lwb_write_issue`, zil.c).

The flush after the log block may then miss the data of `dmu_sync`, and its block pointer may be
missing in the record. With `logbias=throughput` all writes of a volume are logged by pointer.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zfs-dmu-sync-not-awaited",
    layer=Layer.ZFS,
    words="a log block does not wait for the data it points to",
    cell="iscsi-always-noslog-throughput-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=5,
    zfs="2.3.9+dmu_sync_not_awaited",
)
