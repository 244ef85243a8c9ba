"""A read after the reboot gives a block's old content, although a flush covered the newer write.

ZFS detects stale data by their checksum. A stale block of the intent log looks to ZFS like the
log's end. ZFS reads the block once, to replay it, and nothing is wrong with the pool afterwards. So
it makes no difference that a real disk would give the right content from then on; here the old
content stays.

Its cuts aim at an acknowledgement: where an uberblock in flight survives, ZFS does not read the
intent log. Of 10 cuts of any aim, 5 saw it.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.facts.recording.remains import Patch, Remains


def _stale(remains: Remains) -> tuple[Patch, ...]:
    block = remains.needed_log()
    return (Patch(offset=block.offset, content=remains.held_before(block)),)


FAULT = Fault(
    name="read-stale",
    layer=Layer.DISK,
    words="a disk reads a block of the log as it was",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.DATA,
    cuts=1,
    bound_to=frozenset({"layout"}),
    aim="acknowledged",
    spoiler=_stale,
)
