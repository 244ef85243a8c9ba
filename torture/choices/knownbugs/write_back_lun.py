"""A write-back LUN whose target reboots: what it had completed is gone, and its initiator is not told.

SCSI lets a target cache writes (SBC-3, Caches), and a power-on unit attention is all that says that the
cache is empty now: neither libiscsi nor Linux's sd writes again what no SYNCHRONIZE CACHE covered. LIO's
fileio says write-back with `write_back=true` (drivers/target/target_core_file.c). With sync=always ZFS
has logged each write before the target completes it, and the cache is none.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import KnownBug, Side

BUG = KnownBug(
    name="write-back-lun",
    words="a write-back LUN forgets completed writes as its target reboots",
    source="Linux drivers/target/target_core_file.c, SBC-3, Caches; zfsprops(7), sync",
    affected=Side(cell="fileio_wb-standard-noslog-ext4-nasonly"),
    cleared=Side(cell="fileio_wb-always-noslog-ext4-nasonly"),
    seen_by=Sight.DATA,
    cuts=4,
)
