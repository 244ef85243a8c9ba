"""Flushes of a zvol behind `zvol_use_blk_mq=1` take the path of reads, and nothing is flushed.

ZFS judged a request, as opposed to a bio, by `op_is_write`, which is no for `REQ_OP_FLUSH`. On the
path of reads a request without data completes at once (`zvol_request_impl` in
`module/os/linux/zfs/zvol_os.c`). LIO's SYNCHRONIZE CACHE is an empty write with `REQ_PREFLUSH`; the
kernel's flush machinery turns it into this kind of request. In 2.2.0 to 2.2.8 and 2.3.0 to 2.3.4;
writes with FUA were heeded.
"""

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import KnownBug, Side

_CELL = "iscsi-standard-noslog-ext4-bothdie"
_AXES = ("zvol_use_blk_mq=blkmq",)

BUG = KnownBug(
    name="zvol-blk-mq-flush",
    words="a zvol's flushes are taken for reads with zvol_use_blk_mq=1",
    source="OpenZFS #17761, fixed by 8d4c3ee9e6f4, in 2.3.5 as 0bb5950e72b6",
    affected=Side(cell=_CELL, axes=_AXES, zfs="2.3.2"),
    cleared=Side(cell=_CELL, axes=_AXES, zfs="2.3.9"),
    seen_by=Sight.AUDIT,
    cuts=1,
    drops_flushes=True,
)
