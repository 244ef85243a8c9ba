"""One bit of a block of data is flipped after the cut.

The block belongs to a file that stays untouched once it is in the pool. The intent log's replay may
rewrite any other block before it is read.
"""

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


FAULT = Fault(
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
)
