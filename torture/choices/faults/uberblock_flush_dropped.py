"""A disk that never does the flush behind an uberblock, and says that it did.

The next group's first flush makes up for it. Until then the pool would come back one group older, whose
blocks the group under way may overwrite.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.roles import Role

FAULT = Fault(
    name="uberblock-flush-dropped",
    layer=Layer.DISK,
    words="a disk drops the flush behind each uberblock",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    on_disks=DiskFault(drop_flush_every=1, role=Role.UBERBLOCK),
)
