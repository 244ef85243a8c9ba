"""ZFS ignores a zvol's flush that comes as a flag of a write rather than as an operation.

Since Linux 4.10 `REQ_PREFLUSH` is a bit of `bi_opf`. A clean-up left only the comparison with
`REQ_OP_FLUSH`, which matches no bio (`bio_is_flush` in
`include/os/linux/kernel/linux/blkdev_compat.h`). LIO's SYNCHRONIZE CACHE, QEMU's fdatasync of a
zvol and a filesystem's own flushes all come as a flag. In 2.3.0 and 2.3.1, with bios, which is the
default.
"""

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import FromSource, KnownBug, Side

_CELL = "iscsi-standard-noslog-ext4-bothdie"

BUG = KnownBug(
    name="zvol-preflush",
    words="a zvol does not heed flushes",
    source="OpenZFS #17131, fixed by 41823a0ede88, in 2.3.2 as 112dca3483",
    affected=Side(cell=_CELL, zfs=FromSource(name="2.3.1", branch="zfs-2.3.1")),
    cleared=Side(cell=_CELL, zfs="2.3.2"),
    seen_by=Sight.AUDIT,
    cuts=1,
    drops_flushes=True,
)
