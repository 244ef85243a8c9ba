"""ZFS that gives freed blocks out again at once (`metaslab_sync_done`, metaslab.c).

The two transaction groups before the last can then not be read any more: nothing is left for a rewind,
nor for an uberblock that did not reach the disk.
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
