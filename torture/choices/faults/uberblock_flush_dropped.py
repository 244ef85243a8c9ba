"""A disk drops every flush behind an uberblock, and reports success.

The next group's first flush covers the uberblock. Until then a cut would bring the pool back one
group older, and the group under way may overwrite that group's blocks.
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
