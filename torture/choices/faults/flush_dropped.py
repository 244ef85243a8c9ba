"""A disk drops one flush in twenty, and reports success.

The next flush, some 50 ms later, covers the same writes. So few cuts lose anything by it. The audit
sees it by the requests that the client's disk completed in between. For files over NFS and SMB only
the load's own calls show it.

With sync=standard 34 of 40 cuts over NFS see it [70-94 %]. Two flushes in three follow changes of
names, which the load awaits only with their data. With sync=always 11 of 20 see it, and over SMB 2
of 10: there the data were on the disks long before the call returned.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault

FAULT = Fault(
    name="flush-dropped",
    layer=Layer.DISK,
    words="a disk drops one flush in 20",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    on_disks=DiskFault(drop_flush_every=20),
)
