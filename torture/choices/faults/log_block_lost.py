"""A disk that writes nothing of one block in ten of the intent log, and says that it did.

Replay ends at the first block that is missing: all that was acknowledged behind it is lost as well. The
pool is well, for the log's end always looks like that.
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
