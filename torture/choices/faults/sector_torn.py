"""One sector of a flushed write is old after the cut; the rest of the write is there.

As with a flipped bit, the intent log's replay may rewrite the block before it is read.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.errors import HarnessError
from torture.facts.recording.remains import Patch, Remains


def _torn(remains: Remains) -> tuple[Patch, ...]:
    """The last sector that the last block of data changed."""
    block = remains.committed_data()[-1]
    new, old = remains.payload(block), remains.held_before(block)
    for place in reversed(range(0, block.length, remains.sector_bytes)):
        sector = slice(place, place + remains.sector_bytes)
        if old[sector] != new[sector]:
            return (Patch(offset=block.offset + place, content=old[sector]),)
    raise HarnessError(f"write {block.submission} changed no sector")


FAULT = Fault(
    name="sector-torn",
    layer=Layer.DISK,
    words="a sector of a flushed write is old",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.POOL,
    cuts=2,
    bound_to=frozenset({"layout"}),
    spoiler=_torn,
)
