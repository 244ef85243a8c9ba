"""Disks of the NAS that break their promises, or are slow, while the NAS runs."""

from torture.choices.experiments.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.intent_log import Role

EXPERIMENTS = (
    # A disk drops one flush in twenty, and reports success.
    #
    # The next flush, some 50 ms later, covers the same writes. So few cuts lose anything by it. The
    # audit sees it by the requests that the client's disk completed in between. Over NFS and SMB it
    # sees it by the server's answers on the wire: in 39 of 40 cuts [86-100 %] of nfs3, nfs4 and
    # smb.
    Fault(
        name="flush-dropped",
        layer=Layer.DISK,
        words="a disk drops one flush in 20",
        seen_by=Sight.AUDIT,
        on_disks=DiskFault(drop_flush_every=20),
    ),
    # A disk acknowledges a flush 12 ms before the flush is done.
    Fault(
        name="flush-early",
        layer=Layer.DISK,
        words="a flush is acknowledged before its writes",
        seen_by=Sight.AUDIT,
        on_disks=DiskFault(flush_early_ms=12),
    ),
    # A disk drops one write in ten of the intent log's blocks, and reports success.
    #
    # Replay ends at the first missing block: all acknowledged records behind it are lost as well.
    # The pool is sound, for the end of every intent log looks like this.
    Fault(
        name="log-block-lost",
        layer=Layer.DISK,
        words="a disk loses one block of the log in 10",
        seen_by=Sight.AUDIT,
        on_disks=DiskFault(lose_write_every=10, role=Role.ZIL),
    ),
    # A disturbance: one write in four of the intent log takes 60 ms longer, and others overtake it.
    #
    # It loses nothing: a commit waits for all blocks of the chain before its own (OpenZFS
    # `module/zfs/zil.c`, `zil_lwb_set_zio_dependency`).
    Fault(
        name="log-write-slow",
        layer=Layer.DISK,
        words="one write in 4 of the log is slow",
        seen_by=None,
        on_disks=DiskFault(slow_write_every=4, slow_write_ms=60, role=Role.ZIL),
    ),
    # A disk drops every flush behind an uberblock, and reports success.
    #
    # The next group's first flush covers the uberblock. Until then a cut would bring the pool back
    # one group older, and the group under way may overwrite that group's blocks.
    Fault(
        name="uberblock-flush-dropped",
        layer=Layer.DISK,
        words="a disk drops the flush behind each uberblock",
        seen_by=Sight.AUDIT,
        on_disks=DiskFault(drop_flush_every=1, role=Role.UBERBLOCK),
    ),
    # A disk drops one write in fifty, and reports success.
    #
    # The client's data show it too: most writes are the intent log's, and the scrub never reads
    # these.
    Fault(
        name="write-lost",
        layer=Layer.DISK,
        words="a disk loses one write in 50",
        seen_by=Sight.POOL,
        cuts=2,
        on_disks=DiskFault(lose_write_every=50),
    ),
)
