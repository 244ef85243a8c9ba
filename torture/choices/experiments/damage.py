"""Damage on a disk after the cut, by the disk's certain content.

The file that most of it hits is written before the load by the faults' own scripts
(`faulty_disks.toml`), and stays untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from torture.choices.experiments.protocol import Damage
from torture.errors import HarnessError
from torture.facts.recording.certain_content import CertainContent, Patch
from torture.facts.recording.intent_log import VOLUME_BLOCK_BYTES
from torture.facts.recording.model import Write

_LINE = b"this one is at rest\n"
_LINES_OF_A_BLOCK = VOLUME_BLOCK_BYTES // len(_LINE) - 1
_INTO_THE_BLOCK = 1000


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


Spoiler = Callable[[CertainContent], tuple[Patch, ...]]
"""Raises `HarnessError` where the disk holds no suitable block."""

SPOILERS: Mapping[Damage, Spoiler] = {
    Damage.FLIPPED: _flipped,
    Damage.STALE: _stale,
    Damage.TORN: _torn,
    Damage.MISDIRECTED: _misdirected,
}
