"""ZFS reuses freed blocks at once (`metaslab_sync_done`, metaslab.c).

The two transaction groups before the last then become unreadable. Nothing is left for a rewind, nor
for the case that the last uberblock did not reach the disk.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="zfs-frees-not-deferred",
    layer=Layer.ZFS,
    words="freed blocks are used again at once",
    cell="iscsi-standard-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=3,
    zfs="2.3.9+frees_not_deferred",
)
