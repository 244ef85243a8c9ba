"""Which writes of a role a flush covers: native/README.md's rule, implemented separately.

A trim counts as a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torture.facts.recording.events import Event, Kind


@dataclass(kw_only=True)
class Coverage:
    """Which of some writes are under way, completed and covered, on all disks.

    All are numbers of events, and -1 before there is one. `latest` is the highest covered submission.
    `latest_covered_at` is the last event that covered one. `covered_at` has this event for each
    submission.
    """

    latest: int = -1
    latest_covered_at: int = -1
    covered_at: dict[int, int] = field(default_factory=dict)
    _under_way: dict[int, Event] = field(default_factory=dict)
    _completed: dict[int, set[int]] = field(default_factory=dict)
    """By disk, the submissions that are completed and not covered."""
    _flushes: dict[int, frozenset[int]] = field(default_factory=dict)
    """By a flush's submission, the writes that it covers once it completes."""

    @property
    def uncovered(self) -> tuple[int, ...]:
        """The submissions that a cut could lose now."""
        completed = (submission for done in self._completed.values() for submission in done)
        return tuple(sorted((*self._under_way, *completed)))

    def covered_since(self, time_ns: int, events: Sequence[Event]) -> Iterator[int]:
        """The submissions that were covered after this time of the recording."""
        for submission, at in reversed(self.covered_at.items()):
            if events[at].time_ns <= time_ns:
                return
            yield submission

    def submit(self, event: Event) -> None:
        """Note the submission of a write."""
        self._under_way[event.seq] = event

    def forget(self, disk: int) -> None:
        """Drop the writes of a disk that has left the pool: nothing depends on them."""
        self._under_way = {seq: one for seq, one in self._under_way.items() if one.disk != disk}
        self._completed.pop(disk, None)

    def hear(self, event: Event) -> None:
        """Note any event other than a submission of a write."""
        disk = -1 if event.disk is None else event.disk
        match event.kind:
            case Kind.WRITE_COMPLETE | Kind.TRIM_COMPLETE:
                self._complete(event, disk)
            case Kind.FLUSH_SUBMIT:
                self._flushes[event.seq] = frozenset(self._completed.get(disk, ()))
            case Kind.FLUSH_COMPLETE:
                covered = self._flushes.pop(event.reference, frozenset())
                if not event.error:
                    self._cover(disk, covered, at=event.seq)

    def _complete(self, event: Event, disk: int) -> None:
        submitted = self._under_way.pop(event.reference, None)
        if submitted is None or event.error:
            return
        self._completed.setdefault(disk, set()).add(submitted.seq)
        if submitted.fua:
            self._cover(disk, frozenset({submitted.seq}), at=event.seq)

    def _cover(self, disk: int, submissions: frozenset[int], *, at: int) -> None:
        completed = self._completed.get(disk, set())
        for submission in submissions & completed:
            completed.remove(submission)
            self.latest = max(self.latest, submission)
            self.latest_covered_at = at
            self.covered_at[submission] = at
