"""One bit of a block of data is another one after the cut.

It is a block that the intent log's replay does not write anew before anybody has read it, where the
load's sectors tell of one. A cut before any of them was committed may have its block written anew.
"""

from __future__ import annotations

from torture.faults.protocol import Fault, Layer, Sight
from torture.recording.remains import Patch, Remains

_INTO_THE_BLOCK = 1000


def _flipped(remains: Remains) -> tuple[Patch, ...]:
    block = (remains.lasting_data() or remains.committed_data())[-1]
    place = _INTO_THE_BLOCK // remains.sector_bytes * remains.sector_bytes
    sector = bytearray(remains.payload(block)[place : place + remains.sector_bytes])
    sector[_INTO_THE_BLOCK - place] ^= 1
    return (Patch(offset=block.offset + place, content=bytes(sector)),)


FAULT = Fault(
    name="bit-flipped",
    layer=Layer.DISK,
    words="one bit flips on a disk",
    cell="iscsi-always-noslog-btrfs-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    spoiler=_flipped,
)
