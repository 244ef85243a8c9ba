"""When each write of a client became durable, derived from the recording of the NAS's disks.

A write is durable once a covered log block holds it, or points to a covered block that does. It also is
durable if it came before the first write of a transaction group with a covered uberblock. It is then in
that group or an older one, and ZFS does not log committed writes (OpenZFS `module/zfs/zil.c`,
`zil_commit`).

A log block with unknown content may hold anything: the audit reports no finding on a guess.

The writes that a completion of the client's disk or server promises as durable, and when.

With `sync=always` a completed write is durable. With `standard` a completed forced (FUA) write is. A
completed flush makes all writes durable that completed before it began (virtio 1.2, 5.2.6.2; NVMe
Command Set 1.0, 3.2.1; SBC-4, 4.15; zfsprops(7)).

A write to a file is due at an NFS or SMB server's answer if that answer calls it stable. Otherwise it is
due at the answer to the first commit of its file and range. The commit must be sent after the write's
answer, to the same instance of the server. The sources are RFC 1813, 3.3.7 and 3.3.21; RFC 8881, 18.32
and 18.3; [MS-SMB2] 3.3.5.11. With `sync=always` ZFS logs each write before the server answers. An NFS
server answers a change of names once it is stable (Linux fs/nfsd/vfs.c, `commit_metadata`).

The log may lack an older write of a file that was truncated meanwhile (OpenZFS
`module/os/linux/zfs/zfs_vnops_os.c`, `zfs_get_data`: ENOENT). Such a write is not due any more.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from torture.facts.axes.sync import Sync
from torture.facts.evidence.ledger import SECTOR_BYTES
from torture.facts.evidence.requests import (
    BlockKind,
    BlockRequest,
    FileKind,
    FileRequest,
    LoadSector,
    load_sectors_in,
)
from torture.facts.recording.events import Event, Recording
from torture.facts.recording.intent_log import LogBlock, PointedWrite, Role
from torture.oracles.audit.commits import Coverage, Groups
from torture.oracles.audit.disk_writes import DiskWrite
from torture.oracles.audit.extents import sectors_of
from torture.oracles.audit.invariants import Finding, Invariant
from torture.oracles.audit.pointed_data import Pointed

_time_ns = attrgetter("time_ns")


@dataclass(frozen=True, kw_only=True, slots=True)
class Completions:
    """The completed requests of the client's disk or server, in the time of the recording.

    The times may be wrong by `error_ns`.
    """

    requests: tuple[BlockRequest | FileRequest, ...]
    error_ns: int
    names_are_stable: bool = False
    """Whether a server answers a change of names only once it is durable."""

    def due(self, *, sync: Sync, cut_ns: int) -> Iterator[DueWrite]:
        """The writes that had to be durable by `cut_ns`, each once; later completions do not count.

        The recording may be that of the NAS that came back to a surviving client. Then requests from
        before its start do not count: they may have been in the memory of the NAS that died.
        """
        done = [request for request in self.requests if request.completed_ns <= cut_ns]
        blocks = [request for request in done if isinstance(request, BlockRequest)]
        files = [request for request in done if isinstance(request, FileRequest)]
        yield from due_of_disk(blocks, sync=sync)
        yield from due_of_files(files, sync=sync, names_are_stable=self.names_are_stable)


def overdue_in(
    completions: Completions, durable: Durable, events: Sequence[Event], *, sync: Sync, cut: int
) -> tuple[int, list[Finding]]:
    """How many writes were due by the cut, and a finding for each one that was not durable in time."""
    error_ns = completions.error_ns
    count, found = 0, []
    for due in completions.due(sync=sync, cut_ns=events[cut].time_ns):
        count += 1
        kept_ns = durable.since_ns(due, error_ns=error_ns)
        if kept_ns is not None and kept_ns <= due.due_ns + error_ns:
            continue
        at = bisect_right(events, due.due_ns, hi=cut + 1, key=_time_ns) - 1
        until = cut if kept_ns is None else bisect_left(events, kept_ns, key=_time_ns) - 1
        found.append(
            Finding(
                invariant=Invariant.COMPLETED_IS_DURABLE,
                event=at,
                offset_bytes=due.offset_bytes,
                until=max(at, min(until, cut)),
            )
        )
    return count, found


def due_of_disk(done: Sequence[BlockRequest], *, sync: Sync) -> Iterator[DueWrite]:
    """The writes that a disk promises by completing these requests."""
    writes = [
        request for request in done if request.kind is BlockKind.WRITE and request.submitted_ns >= 0
    ]
    if sync is Sync.ALWAYS:
        yield from (_due(write, write.completed_ns) for write in writes)
    if sync is not Sync.STANDARD:
        return
    yield from (_due(write, write.completed_ns) for write in writes if write.is_forced)
    writes = [write for write in writes if not write.is_forced]
    flushes = sorted(
        (request for request in done if request.kind is BlockKind.FLUSH),
        key=lambda flush: flush.completed_ns,
    )
    writes.sort(key=lambda write: write.completed_ns)
    completed_ns = [write.completed_ns for write in writes]
    known = 0
    for flush in flushes:
        before = bisect_right(completed_ns, flush.submitted_ns)
        for write in writes[known:before]:
            yield _due(write, flush.completed_ns)
        known = max(known, before)


def _due(write: BlockRequest, due_ns: int) -> DueWrite:
    return DueWrite(
        submitted_ns=write.submitted_ns,
        due_ns=due_ns,
        places=tuple((x,) for x in sectors_of(write.offset_bytes, write.length_bytes)),
        offset_bytes=write.offset_bytes,
    )


def due_of_files(
    done: Sequence[FileRequest], *, sync: Sync, names_are_stable: bool
) -> Iterator[DueWrite]:
    """The writes and names that a server promises by answering these requests, in their order."""
    if sync is Sync.DISABLED:
        return
    waiting: list[FileRequest] = []
    for request in done:
        match request.kind:
            case FileKind.WRITE if request.submitted_ns < 0:
                pass
            case FileKind.WRITE if sync is Sync.ALWAYS or request.is_forced:
                yield _due_write(request, request.completed_ns)
            case FileKind.WRITE:
                waiting.append(request)
            case FileKind.RESIZE:
                waiting = [write for write in waiting if write.file != request.file]
            case FileKind.COMMIT:
                committed = [write for write in waiting if _covers(request, write)]
                waiting = [write for write in waiting if write not in committed]
                yield from (_due_write(write, request.completed_ns) for write in committed)
            case FileKind.NAME if names_are_stable and request.submitted_ns >= 0:
                yield DueWrite(
                    submitted_ns=request.submitted_ns,
                    due_ns=request.completed_ns,
                    places=tuple((name,) for name in request.names),
                )


def _covers(commit: FileRequest, write: FileRequest) -> bool:
    """Whether a commit covers all of a write."""
    end_bytes = commit.offset_bytes + commit.length_bytes if commit.length_bytes else None
    return (
        write.file == commit.file
        and write.verifier == commit.verifier
        and write.completed_ns <= commit.submitted_ns
        and commit.offset_bytes <= write.offset_bytes
        and (end_bytes is None or write.offset_bytes + write.length_bytes <= end_bytes)
    )


def _due_write(write: FileRequest, due_ns: int) -> DueWrite:
    """The due write: each sector by its content, or by its place if overwritten before it was logged."""
    known: set[int] = set()
    places: list[Place] = []
    for offset, sector in write.sectors:
        touched = sectors_of(offset, SECTOR_BYTES)
        known.update(touched)
        places += [(sector, number) for number in touched]
    whole = sectors_of(write.offset_bytes, write.length_bytes)
    return DueWrite(
        submitted_ns=write.submitted_ns,
        due_ns=due_ns,
        places=(*places, *((number,) for number in whole if number not in known)),
        offset_bytes=write.offset_bytes,
    )


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
