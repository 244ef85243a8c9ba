"""Damage on a disk after the cut, by the disk's certain content."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from torture.choices.experiments.protocol import Fault, Layer, Sight
from torture.choices.volumes import POOL
from torture.errors import HarnessError
from torture.facts.recording.certain_content import CertainContent, Patch
from torture.facts.recording.intent_log import VOLUME_BLOCK_BYTES
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
