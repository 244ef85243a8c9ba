"""Disks of the NAS that lie, are slow, or are spoiled after the cut.

Disks of the NAS that break their promises, or are slow, while the NAS runs.

Disks that had not done their last flushes at the cut, and had acknowledged them.

Damage on a disk after the cut, by the disk's certain content.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from torture.choices.experiments.protocol import Fault, Layer, Sight
from torture.choices.volumes import POOL
from torture.errors import HarnessError
from torture.facts.recording.certain_content import CertainContent, Patch
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.intent_log import VOLUME_BLOCK_BYTES, Role
from torture.facts.recording.model import Write

_LINE = b"this one is at rest\n"
_FILE_BYTES = 1 << 17
_LINES_OF_A_BLOCK = VOLUME_BLOCK_BYTES // len(_LINE) - 1
_INTO_THE_BLOCK = 1000
_WRITE_UNTOUCHED = (
    f"yes '{_LINE.decode().strip()}' | head -c {_FILE_BYTES} > /mnt/still; sync -f /mnt"
)
_COMMIT = f"zpool sync {POOL}"


class _Block(NamedTuple):
    """A block of the untouched file, in the write that made it durable."""

    write: Write
    place: int
    content: bytes

    @property
    def offset(self) -> int:
        return self.write.offset + self.place


def _untouched(certain: CertainContent, *, blocks: int) -> list[_Block]:
    """The last committed blocks of the untouched file. Raises `HarnessError` if they are fewer."""
    found = list(islice(_every_untouched(certain), blocks))
    if len(found) < blocks:
        raise HarnessError(
            f"of the untouched file {len(found)} blocks were committed, not {blocks}"
        )
    return found


def _every_untouched(certain: CertainContent) -> Iterator[_Block]:
    for write in reversed(certain.committed_writes()):
        content = certain.payload(write)  # neighbours may have been merged
        for place in range(0, write.length, VOLUME_BLOCK_BYTES):
            block = content[place : place + VOLUME_BLOCK_BYTES]
            if block.count(_LINE) >= _LINES_OF_A_BLOCK:
                yield _Block(write, place, block)


def _before(certain: CertainContent, block: _Block) -> bytes:
    """The content of the block's place before it was written."""
    return certain.content_before(block.write)[block.place : block.place + VOLUME_BLOCK_BYTES]


def _flipped(certain: CertainContent) -> tuple[Patch, ...]:
    [block] = _untouched(certain, blocks=1)
    place = _INTO_THE_BLOCK // certain.sector_bytes * certain.sector_bytes
    sector = bytearray(block.content[place : place + certain.sector_bytes])
    sector[_INTO_THE_BLOCK - place] ^= 1
    return (Patch(offset=block.offset + place, content=bytes(sector)),)


def _stale(certain: CertainContent) -> tuple[Patch, ...]:
    block = certain.needed_log()
    return (Patch(offset=block.offset, content=certain.content_before(block)),)


def _torn(certain: CertainContent) -> tuple[Patch, ...]:
    """The last sector that the last block of the untouched file changed."""
    [block] = _untouched(certain, blocks=1)
    old = _before(certain, block)
    for place in reversed(range(0, VOLUME_BLOCK_BYTES, certain.sector_bytes)):
        sector = slice(place, place + certain.sector_bytes)
        if old[sector] != block.content[sector]:
            return (Patch(offset=block.offset + place, content=old[sector]),)
    raise HarnessError(f"write {block.write.submission} changed no sector of the untouched file")


def _misdirected(certain: CertainContent) -> tuple[Patch, ...]:
    """A block over another one; its own place keeps its content of before."""
    block, victim = _untouched(certain, blocks=2)
    return (
        Patch(offset=block.offset, content=_before(certain, block)),
        Patch(offset=victim.offset, content=block.content),
    )


_Untouched = partial(
    Fault,
    layer=Layer.DISK,
    seen_by=Sight.POOL,
    bound_to=frozenset({"layout"}),
    in_client=_WRITE_UNTOUCHED,
    in_nas=_COMMIT,
)
"""A fault in the file that stays untouched once it is in the pool."""

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
    # No flush covers writes younger than 2 s, as of a disk whose cache forgets its youngest content.
    #
    # With flushes every 50 ms that is a lie about the last 2 s. Operations acknowledged in that time
    # are lost unless a group has them, and the group is as young.
    Fault(
        name="flush-of-old-only",
        layer=Layer.DISK,
        words="a disk's flushes cover nothing younger than 2 s",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.DATA,
        bound_to=frozenset({"layout"}),
        aim="acknowledged",
        survivors={"data0": DiskState(policy=Policy.LYING, lying_ms=2_000)},
    ),
    # A leg of a mirror had not done its last 10 s of flushes, and had acknowledged them.
    #
    # ZFS takes the newer leg's uberblock, reads that leg's blocks, and heals the other leg: nothing
    # is lost. But when a pool has to be healed after a cut, one of its disks broke its promise. ZFS
    # commits a group every 5 s. With a lie as short as that, 4 of 10 cuts found only stale blocks
    # of the intent log. ZFS takes these from the other leg.
    Fault(
        name="leg-stale",
        layer=Layer.DISK,
        words="a leg of a mirror reads as it was 10 s ago",
        cell="iscsi-always-noslog-mirrored-ext4-bothdie",
        seen_by=Sight.POOL,
        bound_to=frozenset({"layout"}),
        survivors={
            "data0": DiskState(policy=Policy.ALL),
            "data1": DiskState(policy=Policy.LYING, lying_ms=10_000),
        },
    ),
    # A disk had not done its last 50 ms of flushes, and had acknowledged them.
    #
    # The last acknowledgement is a median of 92 ms old at cuts with another aim: 2 of 14 of these
    # cuts see this short lie. Its cuts aim at an acknowledgement, as a share of all cuts does. With
    # sync=always, most writes of an operation were flushed longer before, because guests are
    # emulated: 2 of 10 cuts lost something. With sync=standard 13 of 20 did. In the others, another
    # writer's commit had made the data of the operation durable before.
    Fault(
        name="lies-for-50-ms",
        layer=Layer.DISK,
        words="a disk lies about its last 50 ms",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.DATA,
        cuts=3,
        bound_to=frozenset({"layout"}),
        aim="acknowledged",
        survivors={"data0": DiskState(policy=Policy.LYING, lying_ms=50)},
    ),
    # A log device dies 5 ms before the cut: it acknowledges flushes to the end, and does none.
    #
    # The acknowledgement of a flushed operation takes longer than that through emulated guests. Only
    # cuts with such an operation count, and few have one: 1 of 10 cuts showed it.
    Fault(
        name="log-dies-early",
        layer=Layer.DISK,
        words="a log device dies 5 ms before the cut",
        cell="iscsi-always-plp-ext4-bothdie",
        seen_by=Sight.DATA,
        cuts=28,
        bound_to=frozenset({"slog"}),
        aim="acknowledged",
        survivors={"slog0": DiskState(policy=Policy.LYING, lying_ms=5)},
    ),
    # The legs of a mirrored SLOG differ: one is complete, the other lacks its last 700 ms.
    #
    # Acknowledged blocks of the intent log are on one leg only, as when the other leg lied. ZFS
    # reads all copies of a block of the log before it takes the log to be at its end
    # (`module/zfs/zil.c`, `zil_read_log_block`).
    Fault(
        name="log-on-one-leg",
        layer=Layer.DISK,
        words="the end of the log is on one leg of its mirror",
        cell="iscsi-always-mirror-btrfs-bothdie",
        seen_by=None,
        bound_to=frozenset({"slog"}),
        survivors={
            "slog0": DiskState(policy=Policy.ALL),
            "slog1": DiskState(policy=Policy.LYING, lying_ms=700),
        },
    ),
    # One bit of a block of data is flipped after the cut.
    #
    # The block belongs to a file that stays untouched once it is in the pool. The intent log's
    # replay may rewrite any other block before it is read.
    _Untouched(
        name="bit-flipped",
        words="one bit flips on a disk",
        cell="iscsi-always-noslog-btrfs-bothdie",
        spoiler=_flipped,
    ),
    # A read after the reboot gives a block's old content, although a flush covered the newer write.
    #
    # ZFS detects stale data by their checksum. A stale block of the intent log looks to ZFS like
    # the log's end. ZFS reads the block once, to replay it, and nothing is wrong with the pool
    # afterwards. So it makes no difference that a real disk would give the right content from then
    # on; here the old content stays.
    #
    # Its cuts aim at an acknowledgement: where an uberblock in flight survives, ZFS does not read
    # the intent log. Of 10 cuts of any aim, 5 saw it.
    Fault(
        name="read-stale",
        layer=Layer.DISK,
        words="a disk reads a block of the log as it was",
        seen_by=Sight.DATA,
        bound_to=frozenset({"layout"}),
        aim="acknowledged",
        spoiler=_stale,
    ),
    # One sector of a flushed write is old after the cut; the rest of the write is there.
    #
    # Its block is of the untouched file, as for a flipped bit.
    _Untouched(
        name="sector-torn",
        words="a sector of a flushed write is old",
        cell="iscsi-always-noslog-btrfs-bothdie",
        spoiler=_torn,
    ),
    # A flushed block of data was written over another block, and not to its own place.
    #
    # Two blocks are wrong: the overwritten one, and the block's own place with its old content. Both
    # are of the untouched file. The intent log's replay may rewrite others before they are read: of
    # 10 cuts that took the last data, 8 were seen.
    _Untouched(
        name="write-misdirected",
        words="a disk writes a block to another place",
        cell="iscsi-standard-noslog-btrfs-bothdie",
        spoiler=_misdirected,
    ),
)
