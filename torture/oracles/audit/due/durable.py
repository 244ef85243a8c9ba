"""When each write of a client became durable, derived from the recording of the NAS's disks.

A write is durable once a covered log block holds it, or points to a covered block that does. It also is
durable if it came before the first write of a transaction group with a covered uberblock. It is then in
that group or an older one, and ZFS does not log committed writes (OpenZFS `module/zfs/zil.c`,
`zil_commit`).

A log block with unknown content may hold anything: the audit reports no finding on a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torture.facts.evidence.ledger import SECTOR_BYTES
from torture.facts.evidence.requests import LoadSector, load_sectors_in
from torture.facts.recording.events import Recording
from torture.facts.recording.intent_log import LogBlock, PointedWrite
from torture.facts.recording.roles import Role
from torture.oracles.audit.commits import Groups
from torture.oracles.audit.coverage import Coverage
from torture.oracles.audit.disk_writes import DiskWrite
from torture.oracles.audit.extents import sectors_of
from torture.oracles.audit.pointed_data import Pointed

Key = int | LoadSector | str
"""A sector of the volume or of any file, by number; a sector of the load by content; a name."""
Place = tuple[Key, ...]
"""A part of a write, by the keys that may name it in the log: the first key found there counts."""

_Times = tuple[int, int]
"""The times of submission and of coverage."""
_NEVER_NS = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class DueWrite:
    """A write, or a change of names, that has to be durable by `due_ns`."""

    submitted_ns: int
    due_ns: int
    places: tuple[Place, ...]
    offset_bytes: int | None = None
    """The offset in the volume or the file; None for names."""


@dataclass(kw_only=True)
class Durable:
    """The times at which groups and log blocks became durable."""

    commits: list[_Times] = field(default_factory=list)
    """Times of groups (their first write, their uberblock's coverage), and of log blocks with unknown
    parts.
    """
    _logged: dict[Key, list[_Times]] = field(default_factory=dict)
    """Times of log blocks, by the keys of their content; uncovered blocks have `_NEVER_NS`."""
    _parted: dict[int, list[_Times]] = field(default_factory=dict)
    """The same of the sectors in which a record begins or ends: the next block may have the rest."""
    changes: list[tuple[bytes, _Times]] = field(default_factory=list)
    """The name records of log blocks, with the blocks' times."""

    def hear_log(self, block: LogBlock, times: _Times) -> None:
        """Note a block of the intent log."""
        if not block.is_whole:
            self.commits.append(times)
        for offset, length in block.writes:
            self.hear_logged(sectors_of(offset, length), times)
            for edge in (offset, offset + length):
                if edge % SECTOR_BYTES:
                    self._parted.setdefault(edge // SECTOR_BYTES, []).append(times)
        if block.changes:
            self.changes.append((block.changes, times))

    def hear_pointed(self, write: PointedWrite, times: _Times) -> None:
        """Note a data block that a record points to.

        It holds all writes from before its submission. From then until it is written `dmu_sync` lets no
        other write change it. A later record of the same data is left out (EALREADY).
        """
        self.hear_logged(sectors_of(write.offset_bytes, write.length_bytes), times)

    def hear_logged(self, keys: Iterable[Key], times: _Times) -> None:
        """Note the keys of logged content."""
        for key in keys:
            self._logged.setdefault(key, []).append(times)

    def since_ns(self, due: DueWrite, *, error_ns: int) -> int | None:
        """When the write became durable, if the clocks differ by at most `error_ns`; None if never."""
        begun_ns, until_ns = due.submitted_ns - error_ns, due.due_ns + error_ns
        logged_ns = max(
            (
                self._first_ns(self._times_of(place, begun_ns, until_ns), begun_ns)
                for place in due.places
            ),
            default=0,
        )
        since_ns = min(self._first_ns(self.commits, begun_ns), logged_ns)
        return None if since_ns >= _NEVER_NS else int(since_ns)

    def _times_of(self, place: Place, begun_ns: int, until_ns: int) -> Sequence[_Times]:
        """The times of the first key that was logged in time; a later copy alone says nothing of it.

        A sector that a record's end parts shows no key, and counts by its place.
        """
        *contents, last = place
        for key in contents:
            times = [one for one in self._logged.get(key, ()) if one[0] >= begun_ns]
            is_in_time = any(submitted_ns <= until_ns for submitted_ns, _ in times)
            if times and (is_in_time or not self._is_parted(last, begun_ns, until_ns)):
                return times
        return self._of_name(last) if isinstance(last, str) else self._logged.get(last, ())

    def _is_parted(self, key: Key, begun_ns: int, until_ns: int) -> bool:
        times = self._parted.get(key, ()) if isinstance(key, int) else ()
        return any(begun_ns <= submitted_ns <= until_ns for submitted_ns, _ in times)

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
    """When these writes became durable, by their coverages.

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
            durable.commits.append((events[begun].time_ns, times[1]))
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
