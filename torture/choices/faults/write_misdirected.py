"""A flushed block of data was written over another block, and not to its own place.

Two blocks are wrong: the overwritten one, and the block's own place with its old content.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.remains import Patch, Remains


def _misdirected(remains: Remains) -> tuple[Patch, ...]:
    """The last block of data, over the one written before it; a block alone goes behind its own place."""
    *others, block = remains.committed_data()
    places = [other.offset for other in others if other.offset != block.offset]
    place = places[-1] if places else block.offset + block.length
    return (
        Patch(offset=block.offset, content=remains.held_before(block)),
        Patch(offset=place, content=remains.payload(block)),
    )


FAULT = Fault(
    name="write-misdirected",
    layer=Layer.DISK,
    words="a disk writes a block to another place",
    cell="iscsi-standard-noslog-btrfs-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    bound_to=frozenset({"layout"}),
    spoiler=_misdirected,
)
