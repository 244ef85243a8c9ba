"""The sets of surviving writes that a walk takes of the undecided ones (pure)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from torture.facts.recording.events import Event

ALL_SUBSETS_MAX = 4
"""Of so many undecided writes all subsets are taken; of more, some of them."""
_ONE_BY_ONE_MAX = 64
"""Of more undecided writes the seed draws so many to survive, or to be dropped, alone: a disk without
flushes has hundreds, after each event."""
_DRAWN = 2
"""Further subsets of more writes, drawn by the seed."""


def number_of_sets(undecided: Sequence[int]) -> int:
    """So many sets are taken of so many undecided writes of each disk that has one."""
    count = sum(undecided)
    if count <= ALL_SUBSETS_MAX:
        return 1 << count
    of_disks = len(_sets_of_disks(len(undecided)))
    return 2 + 2 * min(count, _ONE_BY_ONE_MAX) + of_disks + _DRAWN


def survivor_sets(writes: Sequence[Event], generator: random.Random) -> Iterator[Sequence[Event]]:
    """All subsets of a few undecided writes.

    Of more writes: none, all, each alone, all but each, those of whole disks, and some that the
    generator draws.
    """
    count = len(writes)
    if count <= ALL_SUBSETS_MAX:
        for chosen in range(1 << count):
            yield [write for place, write in enumerate(writes) if chosen >> place & 1]
        return
    yield []
    yield writes
    for place in sorted(generator.sample(range(count), min(count, _ONE_BY_ONE_MAX))):
        yield [writes[place]]
        yield [*writes[:place], *writes[place + 1 :]]
    disks = sorted({write.disk for write in writes if write.disk is not None})
    for places in _sets_of_disks(len(disks)):
        keeping = {disks[place] for place in places}
        yield [write for write in writes if write.disk in keeping]
    for _ in range(_DRAWN):
        chosen = generator.getrandbits(count)
        yield [write for place, write in enumerate(writes) if chosen >> place & 1]


def _sets_of_disks(count: int) -> list[tuple[int, ...]]:
    """The disks that keep all that is undecided, while the others lose it, by their places.

    They are each disk, each pair, all disks but one, all but two. So a mirror has a stale leg.
    """
    sizes = {1, 2, count - 2, count - 1} & set(range(1, count))
    return [chosen for size in sorted(sizes) for chosen in combinations(range(count), size)]
