"""ZFS whose commits do not wait for the log blocks before theirs (`zil_lwb_set_zio_dependency`, zil.c).

A sync then returns while an earlier block of the chain is still in flight: replay would end before
it. That takes two blocks of one log in flight at once, and the later one must complete first. Disks
that do their writes in order hide it: 0 of 20 cuts saw it [0-17 %]. So one write in four of the
intent log is slow here: 8 of 8 cuts see it [63-100 %]. Sound ZFS waits (`log_write_slow.py`).
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.roles import Role

FAULT = Fault(
    name="zfs-log-chain-not-awaited",
    layer=Layer.ZFS,
    words="a commit does not wait for the log blocks before its own",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=20,
    on_disks=DiskFault(slow_write_every=4, slow_write_ms=60, role=Role.ZIL),
    zfs="2.3.9+log_chain_not_awaited",
)
