"""What the client's disk promised by completing a request, held against what the NAS's disks had by then.

With `sync=always` a write that was completed is durable; with `standard` one that was forced (FUA), and
all that was completed before a flush began, once the flush is completed (virtio 1.2, 5.2.6.2; NVMe
Command Set 1.0, 3.2.1; SBC-4, 4.15; zfsprops(7)). Durable is what a
covered block of the intent log holds, or points to where that is covered as well, or what came before a
covered uberblock was written: a write is in the transaction group that was open when it came, and no log
is written of what is committed already (OpenZFS `module/zfs/zil.c`, `zil_commit`).

Where it is not known what a block of the log holds, it may hold anything: nobody is accused on a guess.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torture.audit.coverage import Coverage
from torture.audit.disk_writes import DiskWrite
from torture.audit.extents import sectors_of
from torture.audit.pointed import Pointed
from torture.axes.sync import Sync
from torture.evidence.block_requests import BlockKind, BlockRequest
from torture.recording.events import Event
from torture.recording.intent_log import LogBlock, PointedWrite
from torture.recording.roles import Role


@dataclass(frozen=True, kw_only=True, slots=True)
class Completions:
    """What the client's disk completed, in the time of the NAS's log, which may be off by so much."""

    requests: tuple[BlockRequest, ...]
    error_ns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DueWrite:
    """A write that has to be durable by then."""

    write: BlockRequest
    due_ns: int


@dataclass(kw_only=True)
class Durable:
    """What became durable, and when, as a log tells it."""

    _commits: list[tuple[int, int]] = field(default_factory=list)
    """Of uberblocks, and of log blocks of which a part is not known: when submitted and covered."""
    _logged: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """The same of blocks of the log, by the volume's sectors that each holds."""

    def hear_uberblock(self, *, submitted_ns: int, covered_ns: int) -> None:
        """An uberblock that is covered."""
        self._commits.append((submitted_ns, covered_ns))

    def hear_log(self, block: LogBlock, *, submitted_ns: int, covered_ns: int) -> None:
        """A block of the intent log that is covered."""
        times = (submitted_ns, covered_ns)
        if not block.is_whole:
            self._commits.append(times)
        for offset, length in block.writes:
            self._hear_logged(offset, length, times)

    def hear_pointed(self, write: PointedWrite, *, submitted_ns: int, covered_ns: int) -> None:
        """A block of data that a record points to, once both are covered.

        What came before it was submitted is in it: nobody else writes there from then on until it is
        written (`dmu_sync`), and a later record of what it has already is left out (EALREADY).
        """
        self._hear_logged(write.offset_bytes, write.length_bytes, (submitted_ns, covered_ns))

    def _hear_logged(self, offset: int, length: int, times: tuple[int, int]) -> None:
        for sector in sectors_of(offset, length):
            self._logged.setdefault(sector, []).append(times)

    def keeps(self, due: DueWrite, *, error_ns: int) -> bool:
        """Whether it was durable in time, if the clocks differ by so much at most."""
        since_ns = due.write.submitted_ns - error_ns
        until_ns = due.due_ns + error_ns

        def any_of(times: Sequence[tuple[int, int]]) -> bool:
            return any(
                submitted_ns >= since_ns and covered_ns <= until_ns
                for submitted_ns, covered_ns in times
            )

        touched = sectors_of(due.write.offset_bytes, due.write.length_bytes)
        return any_of(self._commits) or all(
            any_of(self._logged.get(sector, ())) for sector in touched
        )

    def since_ns(self, write: BlockRequest, *, error_ns: int) -> int | None:
        """Since when it is durable, if the clocks differ by so much at most; None where it never is."""
        begun_ns = write.submitted_ns - error_ns

        def first_of(times: Sequence[tuple[int, int]]) -> float:
            covered = (covered_ns for submitted_ns, covered_ns in times if submitted_ns >= begun_ns)
            return min(covered, default=math.inf)

        touched = sectors_of(write.offset_bytes, write.length_bytes)
        logged_ns = max((first_of(self._logged.get(sector, ())) for sector in touched), default=0)
        since_ns = min(first_of(self._commits), logged_ns)
        return None if since_ns == math.inf else int(since_ns)


def durable_in(
    events: Sequence[Event],
    disk_writes: Mapping[int, DiskWrite],
    pointed: Pointed,
    coverages: Iterable[Coverage],
) -> Durable:
    """What of these writes became durable, as their coverages say."""
    durable = Durable()
    covered_at = {
        submission: at for coverage in coverages for submission, at in coverage.covered_at.items()
    }
    for submission, at in covered_at.items():
        submitted_ns, covered_ns = events[submission].time_ns, events[at].time_ns
        written = disk_writes[submission]
        if written.role is Role.UBERBLOCK:
            durable.hear_uberblock(submitted_ns=submitted_ns, covered_ns=covered_ns)
        for block in written.log_blocks:
            durable.hear_log(block, submitted_ns=submitted_ns, covered_ns=covered_ns)
        for data in pointed.by_log.get(submission, ()):
            parts = {submission} if data.submissions is None else data.submissions
            if parts and covered_at.keys() >= parts:
                durable.hear_pointed(
                    data.write,
                    submitted_ns=max(events[part].time_ns for part in parts),
                    covered_ns=max(events[covered_at[x]].time_ns for x in (submission, *parts)),
                )
    return durable


def due_writes(requests: Sequence[BlockRequest], *, sync: Sync, cut_ns: int) -> Iterator[DueWrite]:
    """The writes that had to be durable by then, as the requests before the cut say; each once.

    Where a client lived on, and the log is that of the NAS that came back, what had been asked before
    it is not among them: that may have been in the memory of the NAS that died.
    """
    done = [request for request in requests if request.completed_ns <= cut_ns]
    writes = [
        request for request in done if request.kind is BlockKind.WRITE and request.submitted_ns >= 0
    ]
    if sync is Sync.ALWAYS:
        yield from (DueWrite(write=write, due_ns=write.completed_ns) for write in writes)
    if sync is not Sync.STANDARD:
        return
    yield from (
        DueWrite(write=write, due_ns=write.completed_ns) for write in writes if write.is_forced
    )
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
            yield DueWrite(write=write, due_ns=flush.completed_ns)
        known = max(known, before)
