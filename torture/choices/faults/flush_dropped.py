"""A disk that does one flush in twenty not at all, and says that it did.

The next flush makes up for it, some 50 ms later: few cuts lose anything by it, and what it is seen by
is what the client's disk completed in between. Of files over NFS and SMB only the load's own calls tell
it. With sync=standard 34 of 40 cuts over NFS see it [70-94 %]: two flushes in three are behind names,
which the load awaits only with their data. With sync=always 11 of 20 do, and over SMB 2 of 10: there
the data were on the disks long before the call returned.
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
