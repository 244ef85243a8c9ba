"""When each write of a client became durable, as the log of the NAS's disks tells it.

A write is durable once a covered block of the intent log holds it, or points to a covered block that
does. So is one that came before the first write of a transaction group whose uberblock is covered: it is
in that group or an older one, and ZFS logs nothing that is committed (OpenZFS `module/zfs/zil.c`,
`zil_commit`).

Where it is not known what a block of the log holds, it may hold anything: nobody is accused on a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torture.facts.evidence.file_requests import LoadSector, load_sectors_in
from torture.facts.recording.events import Recording
from torture.facts.recording.intent_log import LogBlock, PointedWrite
from torture.facts.recording.roles import Role
from torture.oracles.audit.coverage import Coverage
from torture.oracles.audit.disk_writes import DiskWrite
from torture.oracles.audit.extents import sectors_of
from torture.oracles.audit.groups import Groups
from torture.oracles.audit.pointed import Pointed

Key = int | LoadSector | str
"""A sector of the volume, or of any file; a sector of the load by its content; a name."""
Place = tuple[Key, ...]
"""A part of a write, by the keys under which the log may have it: the first that it has decides."""

_Times = tuple[int, int]
"""When something was submitted, and when it was covered."""
_NEVER_NS = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class DueWrite:
    """A write, or a change of names, that has to be durable by then."""

    submitted_ns: int
    due_ns: int
    places: tuple[Place, ...]
    offset_bytes: int | None = None
    """In the volume or the file; None of names."""


@dataclass(kw_only=True)
class Durable:
    """The times at which something became durable."""

    _commits: list[_Times] = field(default_factory=list)
    """Of groups, and of log blocks of which a part is not known."""
    _logged: dict[Key, list[_Times]] = field(default_factory=dict)
    """Of blocks of the log, by the keys of their content; late ones are covered never."""
    changes: list[tuple[bytes, _Times]] = field(default_factory=list)
    """Of blocks of the log, their records of names."""

    def hear_group(self, times: _Times) -> None:
        """A transaction group: when its first write was submitted, and its uberblock covered."""
        self._commits.append(times)

    def hear_log(self, block: LogBlock, times: _Times) -> None:
        """A block of the intent log."""
        if not block.is_whole:
            self._commits.append(times)
        for offset, length in block.writes:
            self.hear_logged(sectors_of(offset, length), times)
        if block.changes:
            self.changes.append((block.changes, times))

    def hear_pointed(self, write: PointedWrite, times: _Times) -> None:
        """A block of data that a record points to.

        What came before it was submitted is in it: nobody else writes there from then on until it is
        written (`dmu_sync`), and a later record of what it has already is left out (EALREADY).
        """
        self.hear_logged(sectors_of(write.offset_bytes, write.length_bytes), times)

    def hear_logged(self, keys: Iterable[Key], times: _Times) -> None:
        """The keys of something in the log."""
        for key in keys:
            self._logged.setdefault(key, []).append(times)

    def keeps(self, due: DueWrite, *, error_ns: int) -> bool:
        """Whether it was durable in time, if the clocks differ by so much at most."""
        kept_ns = self.since_ns(due, error_ns=error_ns)
        return kept_ns is not None and kept_ns <= due.due_ns + error_ns

    def since_ns(self, due: DueWrite, *, error_ns: int) -> int | None:
        """Since when it is durable, if the clocks differ by so much at most; None where it never is."""
        begun_ns = due.submitted_ns - error_ns
        logged_ns = max(
            (self._first_ns(self._times_of(place, begun_ns), begun_ns) for place in due.places),
            default=0,
        )
        since_ns = min(self._first_ns(self._commits, begun_ns), logged_ns)
        return None if since_ns >= _NEVER_NS else int(since_ns)

    def _times_of(self, place: Place, begun_ns: int) -> Sequence[_Times]:
        for key in place:
            known = self._of_name(key) if isinstance(key, str) else self._logged.get(key, ())
            if any(submitted_ns >= begun_ns for submitted_ns, _ in known):
                return known
        return ()

    def _of_name(self, name: str) -> Sequence[_Times]:
        wanted = name.encode("latin-1") + b"\0"
        return [times for records, times in self.changes if wanted in records]

    @staticmethod
    def _first_ns(times: Sequence[_Times], begun_ns: int) -> float:
        covered = (covered_ns for submitted_ns, covered_ns in times if submitted_ns >= begun_ns)
        return min(covered, default=math.inf)


def durable_in(
    recording: Recording,
    disk_writes: Mapping[int, DiskWrite],
    pointed: Pointed,
    coverages: Iterable[Coverage],
    *,
    groups: Groups,
) -> Durable:
    """What of these writes became durable, as their coverages say.

    Raises what `Recording.payload` raises.
    """
    durable = Durable()
    events = recording.events
    covered_at = {
        submission: at for coverage in coverages for submission, at in coverage.covered_at.items()
    }

    def covered_ns(submission: int) -> int:
        return events[covered_at[submission]].time_ns if submission in covered_at else _NEVER_NS

    for submission, written in disk_writes.items():
        times = (events[submission].time_ns, covered_ns(submission))
        if written.role is Role.UBERBLOCK:
            begun = groups.begun_by(submission)
            durable.hear_group((events[begun].time_ns, times[1]))
        if written.log_blocks:
            durable.hear_logged(_load_sectors(recording, submission), times)
        for block in written.log_blocks:
            durable.hear_log(block, times)
        for data in pointed.by_log.get(submission, ()):
            parts = {submission} if data.submissions is None else data.submissions
            if parts:
                of_all = (
                    max(events[part].time_ns for part in parts),
                    max(covered_ns(part) for part in (submission, *parts)),
                )
                durable.hear_pointed(data.write, of_all)
                for part in parts:
                    durable.hear_logged(_load_sectors(recording, part), of_all)
    return durable


def _load_sectors(recording: Recording, submission: int) -> Iterable[LoadSector]:
    payload = recording.payload(recording.events[submission])
    return (sector for _, sector in load_sectors_in(payload))
