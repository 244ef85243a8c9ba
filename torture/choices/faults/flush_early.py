"""A disk acknowledges a flush 12 ms before the flush is done."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault

FAULT = Fault(
    name="flush-early",
    layer=Layer.DISK,
    words="a flush is acknowledged before its writes",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    on_disks=DiskFault(flush_early_ms=12),
)
