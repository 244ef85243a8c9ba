"""Chains of the intent log: the blocks that replay must pass before it reaches a block.

Each block points to the next one of its chain. Replay ends at a missing block. It begins behind the
blocks whose records are all in a committed transaction group, so these need not be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from torture.facts.recording.intent_log import LogBlock
from torture.oracles.audit.disk_writes import DiskWrite

Chain = tuple[int, int, int]


def missing_links(
    writes: Mapping[int, DiskWrite],
    *,
    holding: Iterable[int],
    uncovered: Iterable[int],
    covered: Iterable[int],
    committed_txg: int,
) -> tuple[int, ...]:
    """The `uncovered` submissions that replay needs before it reaches `holding`.

    Where a block was never written, the next one of its chain is returned instead: replay does not
    reach it. `committed_txg` is the transaction group of the last covered uberblock. A block that lies
    on several disks is present as soon as one of them has it.
    """
    ends: dict[Chain, int] = {}
    for block in _blocks_of(writes, holding):
        if block.place is not None and block.txg > committed_txg:
            ends[block.place.chain] = max(ends.get(block.place.chain, 0), block.place.number)
    if not ends:
        return ()
    lacking = {
        number: block.place
        for number in uncovered
        for block in _blocks_of(writes, (number,))
        if block.place is not None
        and block.place.number < ends.get(block.place.chain, 0)
        and not 0 < block.txg <= committed_txg
    }
    there = {block.place for block in _blocks_of(writes, covered)} if lacking else set()
    missing = {number for number, place in lacking.items() if place not in there}
    missing.update(_after_gaps(writes, ends, committed_txg=committed_txg))
    return tuple(sorted(missing))


def _after_gaps(
    writes: Mapping[int, DiskWrite], ends: Mapping[Chain, int], *, committed_txg: int
) -> Iterator[int]:
    """The submissions of blocks, up to `ends`, whose predecessors were never written."""
    for chain, end in ends.items():
        known = {
            block.place.number: (number, block.txg)
            for number, write in writes.items()
            for block in write.log_blocks
            if block.place is not None and block.place.chain == chain
        }
        ascending = sorted(number for number in known if number <= end)
        for one, following in pairwise(ascending):
            if following != one + 1 and known[one][1] > committed_txg:
                yield known[following][0]


def _blocks_of(writes: Mapping[int, DiskWrite], numbers: Iterable[int]) -> Iterator[LogBlock]:
    for number in numbers:
        if (write := writes.get(number)) is not None:
            yield from write.log_blocks
