"""Damage on a disk after the cut, by the disk's certain content."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.choices.volumes import POOL
from torture.errors import HarnessError
from torture.facts.recording.remains import Patch, Remains
from torture.facts.recording.roles import VOLUME_BLOCK_BYTES

_LINE = b"nobody touches this\n"
_FILE_BYTES = 1 << 17
_LINES_OF_A_BLOCK = VOLUME_BLOCK_BYTES // len(_LINE) - 1
_INTO_THE_BLOCK = 1000


def _flipped(remains: Remains) -> tuple[Patch, ...]:
    for write in reversed(remains.committed_writes()):
        content = remains.payload(write)  # neighbours may have been merged
        for block in range(0, write.length, VOLUME_BLOCK_BYTES):
            if content[block : block + VOLUME_BLOCK_BYTES].count(_LINE) >= _LINES_OF_A_BLOCK:
                return (_patch(content, block, write.offset, remains.sector_bytes),)
    raise HarnessError("no block of the untouched file was committed before the cut")


def _patch(content: bytes, block: int, offset: int, sector_bytes: int) -> Patch:
    flipped = block + _INTO_THE_BLOCK
    place = flipped // sector_bytes * sector_bytes
    sector = bytearray(content[place : place + sector_bytes])
    sector[flipped - place] ^= 1
    return Patch(offset=offset + place, content=bytes(sector))


def _stale(remains: Remains) -> tuple[Patch, ...]:
    block = remains.needed_log()
    return (Patch(offset=block.offset, content=remains.held_before(block)),)


def _torn(remains: Remains) -> tuple[Patch, ...]:
    """The last sector that the last block of data changed."""
    block = remains.committed_data()[-1]
    new, old = remains.payload(block), remains.held_before(block)
    for place in reversed(range(0, block.length, remains.sector_bytes)):
        sector = slice(place, place + remains.sector_bytes)
        if old[sector] != new[sector]:
            return (Patch(offset=block.offset + place, content=old[sector]),)
    raise HarnessError(f"write {block.submission} changed no sector")


def _misdirected(remains: Remains) -> tuple[Patch, ...]:
    """The last block of data, over the one written before it; a block alone goes behind its own place."""
    *others, block = remains.committed_data()
    places = [other.offset for other in others if other.offset != block.offset]
    place = places[-1] if places else block.offset + block.length
    return (
        Patch(offset=block.offset, content=remains.held_before(block)),
        Patch(offset=place, content=remains.payload(block)),
    )


FAULTS = (
    # One bit of a block of data is flipped after the cut.
    #
    # The block belongs to a file that stays untouched once it is in the pool. The intent log's
    # replay may rewrite any other block before it is read.
    Fault(
        name="bit-flipped",
        layer=Layer.DISK,
        words="one bit flips on a disk",
        cell="iscsi-always-noslog-btrfs-bothdie",
        seen_by=Sight.POOL,
        cuts=1,
        bound_to=frozenset({"layout"}),
        in_client=f"yes '{_LINE.decode().strip()}' | head -c {_FILE_BYTES} > /mnt/still; sync -f /mnt",
        in_nas=f"zpool sync {POOL}",
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
        cuts=1,
        bound_to=frozenset({"layout"}),
        aim="acknowledged",
        spoiler=_stale,
    ),
    # One sector of a flushed write is old after the cut; the rest of the write is there.
    #
    # As with a flipped bit, the intent log's replay may rewrite the block before it is read.
    Fault(
        name="sector-torn",
        layer=Layer.DISK,
        words="a sector of a flushed write is old",
        seen_by=Sight.POOL,
        cuts=2,
        bound_to=frozenset({"layout"}),
        spoiler=_torn,
    ),
    # A flushed block of data was written over another block, and not to its own place.
    #
    # Two blocks are wrong: the overwritten one, and the block's own place with its old content.
    Fault(
        name="write-misdirected",
        layer=Layer.DISK,
        words="a disk writes a block to another place",
        cell="iscsi-standard-noslog-btrfs-bothdie",
        seen_by=Sight.POOL,
        cuts=1,
        bound_to=frozenset({"layout"}),
        spoiler=_misdirected,
    ),
)
