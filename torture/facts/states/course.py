"""From when on each write of a recording is certain, and so the last cut that leaves a state (pure)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations

from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import WRITE_COMPLETES, WRITE_SUBMITS, Event, Kind, Recording

_NEVER = 1 << 62


@dataclass(kw_only=True)
class UndecidedWrites:
    """The writes of one disk that no flush covers, from event to event."""

    keeps_completed: bool
    """Whether completed writes survive without a flush."""
    in_flight: dict[int, Event] = field(default_factory=dict)
    completed: list[tuple[int, Event]] = field(default_factory=list)
    """The completion's number, and the write."""

    def step(self, event: Event) -> list[tuple[int, Event]]:
        """Go over an event of this disk; the writes that are covered from now on, as in `completed`."""
        if event.kind in WRITE_SUBMITS:
            self.in_flight[event.seq] = event
        elif event.kind in WRITE_COMPLETES:
            write = self.in_flight.pop(event.reference)
            if not event.error and write.fua:
                return [(event.seq, write)]
            if not event.error:
                self.completed.append((event.seq, write))
        elif event.kind is Kind.FLUSH_COMPLETE and not event.error:
            covered = [one for one in self.completed if one[0] < event.reference]
            self.completed = [one for one in self.completed if one[0] >= event.reference]
            return covered
        return []

    @property
    def undecided(self) -> list[Event]:
        """The writes that may survive or not, in the order in which they apply."""
        completed = () if self.keeps_completed else (write for _, write in self.completed)
        return [*completed, *self.in_flight.values()]

    @property
    def kept(self) -> tuple[int, ...]:
        """The completed writes that survive without a flush."""
        return tuple(write.seq for _, write in self.completed) if self.keeps_completed else ()


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
    undecided: Sequence[int]
    """By event, the number of undecided writes."""
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
    undecided: list[int] = []
    submitted: list[int] = []
    count = 0
    for event in recording.events[: last + 1]:
        if event.disk is not None and (disk := writes.get(event.disk)) is not None:
            count -= len(disk.undecided)
            for _, write in disk.step(event):
                certain_at[write.seq] = event.seq
            if event.kind in WRITE_SUBMITS:
                submitted.append(event.seq)
            elif event.kind in WRITE_COMPLETES:
                ended_at[event.reference] = event.seq
                if event.error:
                    failing.add(event.reference)
                if event.error or disk.keeps_completed:
                    certain_at[event.reference] = event.seq
            count += len(disk.undecided)
        undecided.append(count)
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
