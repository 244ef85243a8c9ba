"""A block of data that a flush covered was written over another one, and not where it belongs.

Two blocks are wrong by it: the other one, and its own place, which holds what was there before.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.remains import Patch, Remains


def _misdirected(remains: Remains) -> tuple[Patch, ...]:
    """The last block of data, over the one written before it; where it is alone, behind its own place."""
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
