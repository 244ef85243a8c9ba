"""Which writes of a role a flush covers, event by event: the rule of native/README.md, on its own.

Trims are writes, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torture.facts.recording.events import Event, Kind


@dataclass(kw_only=True)
class Coverage:
    """Of some writes: which are under way, completed, and covered, on all disks.

    `latest` is the submission's number of the last one that is covered, `latest_covered_at` that of
    the event which covered one last; -1 before there is one. `covered_at` has this of each submission.
    """

    latest: int = -1
    latest_covered_at: int = -1
    covered_at: dict[int, int] = field(default_factory=dict)
    _under_way: dict[int, Event] = field(default_factory=dict)
    _completed: dict[int, set[int]] = field(default_factory=dict)
    """By disk, the submissions that were completed and are not covered."""
    _flushes: dict[int, frozenset[int]] = field(default_factory=dict)
    """By a flush's submission, what it will have covered once it is completed."""

    @property
    def uncovered(self) -> tuple[int, ...]:
        """The submissions that a cut could take away now."""
        completed = (submission for done in self._completed.values() for submission in done)
        return tuple(sorted((*self._under_way, *completed)))

    def covered_since(self, time_ns: int, events: Sequence[Event]) -> Iterator[int]:
        """The submissions that were covered later than at this time of the log."""
        for submission, at in reversed(self.covered_at.items()):
            if events[at].time_ns <= time_ns:
                return
            yield submission

    def submit(self, event: Event) -> None:
        """One of the writes begins."""
        self._under_way[event.seq] = event

    def hear(self, event: Event) -> None:
        """Any event that is no submission of a write."""
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
