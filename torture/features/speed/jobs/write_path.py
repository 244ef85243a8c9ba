"""The write path of a job, counted in the shelf's recording: writes, flushes, and times (pure).

Every number is one of requests to disks. The client's part is known from fio's report. A time in slow
motion is divided by N, so all times are real ones.

The place in ZFS's write path that each write of a recording belongs to (pure).

A write's content shows its role. Two kinds of blocks have no mark of their own, and addresses in the
intent log show them:

- A block of the log in a raidz is split over disks. Only one column has the block's head. The block
  before it in the chain has the address of the whole (OpenZFS `include/sys/zil.h`, `zc_next_blk`).
- Without a log device a large synchronous write goes straight to its place in the pool, and the log
  points there (`module/zfs/zfs_log.c`, `zfs_log_write`, `WR_INDIRECT`). The client waits for it.

Pointers in other columns than the first are not seen: their blocks then count as data.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median
from typing import Self

from torture.facts.evidence import documents
from torture.facts.evidence.documents import Count, Document, Measure
from torture.facts.recording.events import WRITE_COMPLETES, Event, Kind, Recording
from torture.facts.recording.intent_log import Extent, Role, log_blocks_in, next_extents_in, role_of

_FIRST_BLOCK_BYTES = (1 << 20) + (4 << 20)
"""The disk's offset of address 0: behind the partition's start, two labels and the boot block
(`include/sys/vdev_impl.h`, `VDEV_LABEL_START_SIZE`)."""
_VDEV = 0
"""The data disks are the pool's first top-level vdev, whose addresses are meant here."""
_SECTOR_BYTES = 512


class PathPlace(StrEnum):
    """A stop of the write path."""

    ZIL_POOL = "zil-pool"
    """Blocks of the intent log on data disks."""
    ZIL_SLOG = "zil-slog"
    """Blocks of the intent log on log devices."""
    POINTED = "pointed"
    """Data that a log block points to: a synchronous write waits for it, and no group writes it again."""
    DATA = "data"
    """Data of transaction groups, in blocks of a multiple of 16 KiB."""
    METADATA = "metadata"
    """Metadata of transaction groups, and data of other lengths, such as parts of a raidz."""
    UBERBLOCK = "uberblock"
    """Uberblocks and labels, which end a transaction group."""


WAITED_FOR = (PathPlace.ZIL_POOL, PathPlace.ZIL_SLOG, PathPlace.POINTED)
"""The places that a synchronous write waits for."""
_OF_ROLES = {
    Role.DATA: PathPlace.DATA,
    Role.METADATA: PathPlace.METADATA,
    Role.UBERBLOCK: PathPlace.UBERBLOCK,
    Role.HEARTBEAT: PathPlace.UBERBLOCK,
    Role.LABEL: PathPlace.UBERBLOCK,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolShape:
    """The pool's disks, as far as addresses and places need them."""

    logs: Collection[str] = ()
    """The names of the log devices."""
    columns: int = 1
    """Over how many disks a block is split: 1 on a single disk or a mirror; 0: addresses are not read."""


def places_of_writes(recording: Recording, shape: PoolShape) -> dict[int, PathPlace]:
    """The place of each `write-submit`, by number. It reads one payload at a time.

    Raises what `Recording.payload` raises.
    """
    logs = {place for place, disk in enumerate(recording.disks) if disk.name in shape.logs}
    found: dict[int, PathPlace] = {}
    unsure: list[Event] = []
    chained, pointed = _Addresses(), _Addresses()
    for event in recording.events:
        if event.kind is not Kind.WRITE_SUBMIT:
            continue
        payload = recording.payload(event)
        role = role_of(payload)
        blocks = [] if role in (Role.UBERBLOCK, Role.LABEL) else list(log_blocks_in(payload))
        if role is Role.ZIL or blocks:
            found[event.seq] = PathPlace.ZIL_SLOG if event.disk in logs else PathPlace.ZIL_POOL
            chained.add(next_extents_in(payload), event.seq, shape.columns)
            for write in (write for block in blocks for write in block.pointed):
                pointed.add(write.extents, event.seq, shape.columns)
            continue
        found[event.seq] = _OF_ROLES[role]
        if found[event.seq] is not PathPlace.UBERBLOCK and event.disk not in logs:
            unsure.append(event)
    for event in unsure:
        if shape.columns > 1 and chained.has(event, is_noted_before=True):
            found[event.seq] = PathPlace.ZIL_POOL
        elif pointed.has(event, is_noted_before=False):
            found[event.seq] = PathPlace.POINTED
    return found


@dataclass(kw_only=True)
class _Addresses:
    """Ranges of bytes on each data disk, and the event that noted them."""

    _ranges: set[tuple[int, int, int]] = field(default_factory=set)
    """Start, end, event."""
    _sorted: list[tuple[int, int, int]] = field(default_factory=list)
    _longest: int = 0

    def add(self, extents: Iterable[Extent], noted: int, columns: int) -> None:
        for extent in extents:
            if columns and extent.vdev == _VDEV:
                start = extent.offset_bytes // columns // _SECTOR_BYTES * _SECTOR_BYTES
                end = -(-(extent.offset_bytes + extent.length_bytes) // columns)
                self._ranges.add((_FIRST_BLOCK_BYTES + start, _FIRST_BLOCK_BYTES + end, noted))
                self._longest = max(self._longest, end - start)

    def has(self, event: Event, *, is_noted_before: bool) -> bool:
        """Whether half of the write, or half of a range, is in both.

        A merged write has several blocks, and a raidz puts a column up to one sector further.
        """
        if len(self._sorted) < len(self._ranges):
            self._sorted = sorted(self._ranges)
        low = bisect_left(self._sorted, (event.offset - self._longest, 0, 0))
        high = bisect_right(self._sorted, (event.offset + event.length, 0, 0))
        return any(
            (noted < event.seq) is is_noted_before and _is_half_in(event, start, end)
            for start, end, noted in self._sorted[low:high]
        )


def _is_half_in(event: Event, start: int, end: int) -> bool:
    common = min(event.offset + event.length, end) - max(event.offset, start)
    return common > 0 and common * 2 >= min(event.length, end - start)


Span = tuple[int, int]
"""From a submission to its completion, in nanoseconds."""


def union_of(spans: Iterable[Span]) -> list[Span]:
    """The same time as disjoint spans, ascending; empty spans are left out."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def length_of(union: Iterable[Span]) -> int:
    """The time of disjoint spans."""
    return sum(end - start for start, end in union)


def shared_by(one: Sequence[Span], other: Sequence[Span]) -> int:
    """The time that is in both unions.

    Of two unions' time together, each moment in both counts twice. So it is the excess over the
    union of both.
    """
    return length_of(one) + length_of(other) - length_of(union_of([*one, *other]))


_NS_PER_MS = 1e6
_DIGITS = 6
_OF_GROUPS = (PathPlace.DATA, PathPlace.METADATA)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSpan:
    """The events of a job, by their numbers in the recording."""

    first: int
    ended: int
    """The last event before the job's end: later ones are those of settling."""
    last: int
    """The last event of settling: the job's transaction groups are then on the disks."""
    slow_motion: float
    settled_in: float
    """The slow motion in which the disks settled; 0: they did not wait, so nothing is timed."""

    def times_at(self, seq: int) -> float:
        """The slow motion when this event came; 0: none is known."""
        return self.slow_motion if seq <= self.ended else self.settled_in


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientWork:
    """The client's work by fio's report, which leaves out the warm-up."""

    operations: int
    bytes: int
    run_ms: float
    """As it was in slow motion. It ends with the job's last request to the log."""
    warm_up_share: float
    """The time of the warm-up by that of the run."""
    sync_ms: float | None
    """The mean time of a synchronous write, in real time; None for a job of other requests."""


class Traffic(Document, frozen=True, kw_only=True):
    """Requests of one sort, and the time from the submission of each to its completion."""

    requests: Count = 0
    """All of them."""
    bytes: Count = 0
    """Those of their payloads."""
    timed: Count = 0
    """Those that completed while the disks took modelled time; only their times are below."""
    sum_ms: Measure = 0.0
    """Requests at the same time each count."""
    median_ms: Measure = 0.0
    """The median of the same times."""


class SyncWait(Document, frozen=True, kw_only=True):
    """The parts of a synchronous write's mean time; they add up to it.

    They are an estimate. Each moment of the job belongs to one part, by the requests in flight then.
    The mean time is divided in the same proportion. Those moments are of fio's run, which ends here with
    the last write of the log or a later flush. With one thread a part is the wait of its
    writes. With several, a flush of one may hide another's request on the link.
    """

    zil_ms: Measure = 0.0
    """Writes of the log, or of data that it points to, were in flight, and no flush was."""
    flush_ms: Measure = 0.0
    """Flushes were in flight on the disks that have the log, and no write of the log was."""
    both_ms: Measure = 0.0
    """Writes of the log and flushes were in flight."""
    rest_ms: Measure = 0.0
    """Neither: client, link and NAS."""


class WritePath(Document, frozen=True, kw_only=True):
    """The counts of one job, and of the transaction groups that it caused."""

    places: dict[str, Traffic] = documents.field(default_factory=dict)
    """By place (`torture.features.speed.jobs.write_path`). Trims and zeroes are left out."""
    flushes: dict[str, Traffic] = documents.field(default_factory=dict)
    """By disk."""
    client_operations: Measure = 0.0
    """With those of the warm-up, an estimate: as many as the log was written more often than in the run.

    Without a log the rate of the run counts.
    """
    client_bytes: Measure = 0.0
    """The same of bytes."""
    amplification: Measure | None = None
    """Bytes written to all disks by bytes that the client wrote; None where it wrote nothing."""
    late_share: Measure | None = None
    """The part of the transaction groups' data that disks got after the job's end, 0 to 1.

    A cut then would lose the client's writes of it, except those of the intent log. None without data.
    """
    flushes_per_operation: Measure | None = None
    """Flushes of disks that have the log by synchronous operations, both in fio's run.

    Each leg of a mirror has its own. Below 1 one flush covers writes of several threads.
    """
    wait: SyncWait | None = None
    """None for a job without synchronous writes."""


def write_path_of(
    recording: Recording, span: JobSpan, work: ClientWork, shape: PoolShape
) -> WritePath:
    """The counts of a job, from the recording or from the part of it with the job's events.

    Raises what `Recording.payload` raises.
    """
    within = [event for event in recording.events if span.first < event.seq <= span.last]
    places = places_of_writes(_part(recording, within), shape)
    requests = _requests_in(within)
    by_place = {
        str(place): _traffic([one for one in requests if places.get(one.event.seq) is place], span)
        for place in PathPlace
        if place in places.values()
    }
    flushes = [one for one in requests if one.event.kind is Kind.FLUSH_SUBMIT]
    by_disk = {
        disk.name: _traffic(own, span)
        for number, disk in enumerate(recording.disks)
        if (own := [one for one in flushes if one.event.disk == number])
    }
    written = sum(traffic.bytes for traffic in by_place.values())
    answering = _answering(recording, shape.logs)
    waits = _waits_in(requests, places, span, answering)
    if waits is None:
        run, whole = None, 1 + work.warm_up_share
        until = [one for one in flushes if one.event.seq <= span.ended]
        flushed = sum(one.event.disk in answering for one in until) / whole
    else:
        run = waits.last(work.run_ms)
        whole, flushed = waits.times_as_many_as(run), len(run.flushes)
    client_bytes = work.bytes * whole
    is_sync = work.sync_ms is not None and work.operations > 0
    return WritePath(
        places=by_place,
        flushes=by_disk,
        client_operations=round(work.operations * whole, _DIGITS),
        client_bytes=round(client_bytes, _DIGITS),
        amplification=round(written / client_bytes, _DIGITS) if client_bytes else None,
        late_share=_late_share(requests, places, span),
        flushes_per_operation=round(flushed / work.operations, _DIGITS) if is_sync else None,
        wait=_divided(work.sync_ms or 0.0, run) if is_sync else None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """A submission, and the time of its completion, if it has one."""

    event: Event
    end_ns: int | None


def _requests_in(events: Iterable[Event]) -> list[_Request]:
    """The writes and flushes that were submitted among these events."""
    completes = WRITE_COMPLETES | {Kind.FLUSH_COMPLETE}
    events = list(events)
    ends = {event.reference: event.time_ns for event in events if event.kind in completes}
    wanted = (Kind.WRITE_SUBMIT, Kind.FLUSH_SUBMIT)
    return [
        _Request(event=event, end_ns=ends.get(event.seq))
        for event in events
        if event.kind in wanted
    ]


def _late_share(
    requests: Iterable[_Request], places: Mapping[int, PathPlace], span: JobSpan
) -> float | None:
    blocks = [one.event for one in requests if places.get(one.event.seq) in _OF_GROUPS]
    late = sum(event.length for event in blocks if event.seq > span.ended)
    written = sum(event.length for event in blocks)
    return round(late / written, _DIGITS) if written else None


def _traffic(requests: Collection[_Request], span: JobSpan) -> Traffic:
    times_ms = [
        (end_ns - one.event.time_ns) / _NS_PER_MS / times
        for one in requests
        if (end_ns := one.end_ns) is not None and (times := span.times_at(one.event.seq))
    ]
    return Traffic(
        requests=len(requests),
        bytes=sum(one.event.length for one in requests),
        timed=len(times_ms),
        sum_ms=round(sum(times_ms), _DIGITS),
        median_ms=round(median(times_ms), _DIGITS) if times_ms else 0.0,
    )


def _part(recording: Recording, events: list[Event]) -> Recording:
    return Recording(folder=recording.folder, disks=recording.disks, events=tuple(events))


def _answering(recording: Recording, logs: Collection[str]) -> frozenset[int]:
    """The disks that have the log: log devices, otherwise all."""
    numbers = {number for number, disk in enumerate(recording.disks) if disk.name in logs}
    return frozenset(numbers or range(len(recording.disks)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waits:
    """Requests that synchronous writes wait for, until a job's end, and the time that they are of."""

    log: tuple[Span, ...]
    flushes: tuple[Span, ...]
    begin_ns: int
    end_ns: int

    def last(self, run_ms: float) -> Self:
        """Those that ended in the last so many ms: fio counts operations in its run alone."""
        begin_ns = max(self.begin_ns, self.end_ns - round(run_ms * _NS_PER_MS))
        return replace(
            self,
            log=tuple(one for one in self.log if one[1] > begin_ns),
            flushes=tuple(one for one in self.flushes if one[1] > begin_ns),
            begin_ns=begin_ns,
        )

    def times_as_many_as(self, run: Self) -> float:
        """How many times as many writes of the log there are as in the run."""
        return len(self.log) / len(run.log) if run.log else 1.0


def _waits_in(
    requests: Iterable[_Request],
    places: Mapping[int, PathPlace],
    span: JobSpan,
    answering: Collection[int],
) -> _Waits | None:
    """None for a job that wrote nothing to the log."""
    done = [
        (one.event, (one.event.time_ns, one.end_ns))
        for one in requests
        if one.event.seq <= span.ended and one.end_ns is not None
    ]
    log = tuple(one for event, one in done if places.get(event.seq) in WAITED_FOR)
    if not log:
        return None
    begin_ns = min(start for start, _ in log)
    flushes = tuple(
        one
        for event, one in done
        if event.kind is Kind.FLUSH_SUBMIT and event.disk in answering and one[1] > begin_ns
    )
    end_ns = max(end for _, end in (*log, *flushes))
    return _Waits(log=log, flushes=flushes, begin_ns=begin_ns, end_ns=end_ns)


def _divided(mean_ms: float, run: _Waits | None) -> SyncWait:
    """The parts of a mean time; see `SyncWait`."""
    if run is None or run.end_ns == run.begin_ns:
        return SyncWait(rest_ms=round(mean_ms, _DIGITS))
    log, flushed = (
        union_of((max(start, run.begin_ns), end) for start, end in spans)
        for spans in (run.log, run.flushes)
    )
    both = shared_by(log, flushed)
    whole = run.end_ns - run.begin_ns
    parts = (length_of(log) - both, length_of(flushed) - both, both)
    zil_ms, flush_ms, both_ms = (round(mean_ms * part / whole, _DIGITS) for part in parts)
    return SyncWait(
        zil_ms=zil_ms,
        flush_ms=flush_ms,
        both_ms=both_ms,
        rest_ms=round(max(mean_ms - zil_ms - flush_ms - both_ms, 0.0), _DIGITS),
    )
