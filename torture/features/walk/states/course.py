"""For each write, the event after which it surely survives or surely does not (pure).

The last cut that leaves a state follows from it.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations

from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import WRITE_COMPLETES, WRITE_SUBMITS, Event, Kind, Recording

RULE = 1
"""The rule by which today's walks make their states.

Rule 1: no state lacks a write that its disk had completed for good, and each state with a loss was
held against `torture.facts.recording.crash_state`. Rule 0, of older walks: a disk with power-loss
protection may lack a completed write until a flush covers it.
"""
_NEVER = 1 << 62


@dataclass(kw_only=True)
class UndecidedWrites:
    """The writes of one disk that may survive or not, from event to event."""

    keeps_completed: bool
    """Whether completed writes survive without a flush."""
    in_flight: dict[int, Event] = field(default_factory=dict)
    completed: list[tuple[int, Event]] = field(default_factory=list)
    """The completion's number, and the write."""
    _kept: list[tuple[int, Event]] = field(default_factory=list)

    def step(self, event: Event) -> list[tuple[int, Event]]:
        """Go over an event of this disk; the writes that are certain from now on, as in `completed`.

        A write becomes certain once: by its completion where that suffices, else by a flush.
        """
        if event.kind in WRITE_SUBMITS:
            self.in_flight[event.seq] = event
        elif event.kind in WRITE_COMPLETES:
            write = self.in_flight.pop(event.reference)
            if not event.error:
                return self._complete(event.seq, write)
        elif event.kind is Kind.FLUSH_COMPLETE and not event.error:
            self._kept = [one for one in self._kept if one[0] >= event.reference]
            covered = [one for one in self.completed if one[0] < event.reference]
            self.completed = [one for one in self.completed if one[0] >= event.reference]
            return covered
        return []

    def _complete(self, completion: int, write: Event) -> list[tuple[int, Event]]:
        if write.fua:
            return [(completion, write)]
        (self._kept if self.keeps_completed else self.completed).append((completion, write))
        return [(completion, write)] if self.keeps_completed else []

    @property
    def undecided(self) -> list[Event]:
        """The writes that may survive or not, in the order in which they apply."""
        return [*(write for _, write in self.completed), *self.in_flight.values()]

    @property
    def kept(self) -> tuple[int, ...]:
        """The completed writes that survive without a flush: a crash state must list them."""
        return tuple(write.seq for _, write in self._kept)


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """The fates of all writes, up to the last event."""

    last: int
    certain_at: Sequence[int]
    """By submission, the event from which on the write is there in each state, or in none."""
    later_certain_at: Sequence[int]
    """By event, the first such event of all writes after it."""
    ended_at: Mapping[int, int]
    """By submission, the write's completion, or its failure."""
    failing: Set[int]
    """The submissions that fail."""
    undecided: Sequence[tuple[int, ...]]
    """By event, the number of undecided writes of each disk that has one."""
    submitted: Sequence[int]
    """All submissions, ascending."""

    def submitted_between(self, cut: int, later: int) -> Sequence[int]:
        """The submissions after one cut and before another one."""
        return self.submitted[
            bisect_right(self.submitted, cut) : bisect_right(self.submitted, later)
        ]

    def unsettled(self, in_flight: Sequence[Event]) -> list[tuple[int, int]]:
        """Of these writes, the pairs that overlap, and with itself each write that fails later.

        Two that overlap apply in another order, once they have completed in that order.
        """
        pairs = [(write.seq, write.seq) for write in in_flight if write.seq in self.failing]
        for one, other in combinations(in_flight, 2):
            begin, end = max(one.offset, other.offset), min(_end_of(one), _end_of(other))
            if one.disk == other.disk and begin < end:
                pairs.append((one.seq, other.seq))
        return pairs

    def last_cut(
        self,
        cut: int,
        dropped: Sequence[int],
        there: Set[int],
        unsettled: Sequence[tuple[int, int]],
    ) -> int:
        """The last cut that leaves the same state as this cut does.

        The state needs that all `dropped` writes, and all writes after the cut, can still be dropped.
        The `unsettled` pairs that are `there` must not have completed.
        """
        ends = [self.later_certain_at[cut], *(self.certain_at[write] for write in dropped)]
        for pair in unsettled:
            if there >= set(pair):
                ends += [self.ended_at.get(write, _NEVER) for write in pair]
        return max(cut, min(*ends, self.last + 1) - 1)


def _end_of(write: Event) -> int:
    return write.offset + write.length


def course_of(recording: Recording, disks: Mapping[str, Persistence], *, last: int) -> Course:
    """The course of the writes of these disks up to event `last`."""
    writes = {
        recording.place_of(name): UndecidedWrites(keeps_completed=kind is Persistence.PLP)
        for name, kind in disks.items()
    }
    certain_at = [_NEVER] * (last + 2)
    ended_at: dict[int, int] = {}
    failing: set[int] = set()
    undecided: list[tuple[int, ...]] = []
    submitted: list[int] = []
    counts = dict.fromkeys(writes, 0)
    for event in recording.events[: last + 1]:
        if event.disk is not None and (disk := writes.get(event.disk)) is not None:
            for _, write in disk.step(event):
                certain_at[write.seq] = event.seq
            if event.kind in WRITE_SUBMITS:
                submitted.append(event.seq)
            elif event.kind in WRITE_COMPLETES:
                ended_at[event.reference] = event.seq
                if event.error:
                    failing.add(event.reference)
                    certain_at[event.reference] = event.seq
            counts[event.disk] = len(disk.completed) + len(disk.in_flight)
        undecided.append(tuple(filter(None, counts.values())))
    later = [_NEVER] * (last + 2)
    for event_seq in range(last, -1, -1):
        later[event_seq] = min(later[event_seq + 1], certain_at[event_seq + 1])
    return Course(
        last=last,
        certain_at=certain_at,
        later_certain_at=later,
        ended_at=ended_at,
        failing=failing,
        undecided=undecided,
        submitted=submitted,
    )


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
