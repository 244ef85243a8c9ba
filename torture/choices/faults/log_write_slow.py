"""A disturbance: one write in four of the intent log takes 60 ms longer, and others overtake it.

It loses nothing: a commit waits for all blocks of the chain before its own (OpenZFS
`module/zfs/zil.c`, `zil_lwb_set_zio_dependency`).
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.roles import Role

FAULT = Fault(
    name="log-write-slow",
    layer=Layer.DISK,
    words="one write in 4 of the log is slow",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=None,
    cuts=0,
    on_disks=DiskFault(slow_write_every=4, slow_write_ms=60, role=Role.ZIL),
)
