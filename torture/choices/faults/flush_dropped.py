"""A disk drops one flush in twenty, and reports success.

The next flush, some 50 ms later, covers the same writes. So few cuts lose anything by it. The audit
sees it by the requests that the client's disk completed in between. Over NFS and SMB it sees it by
the server's answers on the wire: in 39 of 40 cuts [86-100 %] of nfs3, nfs4 and smb.
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
