"""A disk drops one write in fifty, and reports success.

The client's data show it too: most writes are the intent log's, and the scrub never reads these.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault

FAULT = Fault(
    name="write-lost",
    layer=Layer.DISK,
    words="a disk loses one write in 50",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=2,
    on_disks=DiskFault(lose_write_every=50),
)
