"""A write-back LUN whose target reboots loses its completed writes, and its initiator writes none again.

SCSI lets a target cache writes (SBC-3, Caches). Only a power-on unit attention reports that the
cache is empty now. Neither libiscsi nor Linux's sd then repeats the writes that no SYNCHRONIZE
CACHE covered. LIO's fileio offers write-back with `write_back=true`
(drivers/target/target_core_file.c). With sync=always ZFS has logged each write before the target
completes it, so the cache holds nothing volatile.
"""

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
