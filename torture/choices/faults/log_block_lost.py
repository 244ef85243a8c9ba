"""A disk drops one write in ten of the intent log's blocks, and reports success.

Replay ends at the first missing block: all acknowledged records behind it are lost as well. The
pool is sound, for the end of every intent log looks like this.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.roles import Role

FAULT = Fault(
    name="log-block-lost",
    layer=Layer.DISK,
    words="a disk loses one block of the log in 10",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    on_disks=DiskFault(lose_write_every=10, role=Role.ZIL),
)
