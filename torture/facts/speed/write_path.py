"""The write path of a job, counted in the shelf's recording: writes, flushes, and times (pure).

Every number is one of requests to disks. The client's part is known from fio's report. A time in slow
motion is divided by N, so all times are real ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

from torture.facts.evidence.documents import Count, Document, Measure
from torture.facts.recording.events import WRITE_COMPLETES, Event, Kind, Recording
from torture.facts.speed.busy_time import Span, length_of, shared_by, union_of
from torture.facts.speed.written_places import WAITED_FOR, PathPlace, PoolShape, places_of_writes

_NS_PER_MS = 1e6
_DIGITS = 6


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
    """The client's work in the whole of a job, its warm-up as well."""

    operations: float
    """In the warm-up an estimate: fio reports nothing of it, so its rate is that of the run."""
    bytes: float
    sync_ms: float | None
    """The mean time of a synchronous write, in real time; None for a job of other requests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic(Document):
    """Requests of one sort, and the time from the submission of each to its completion."""

    requests: Count = 0
    bytes: Count = 0
    timed: Count = 0
    """Those that completed while the disks took modelled time; only their times are below."""
    sum_ms: Measure = 0.0
    """Requests at the same time each count."""
    median_ms: Measure = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncWait(Document):
    """The parts of a synchronous write's mean time; they add up to it.

    They are an estimate. Each moment of the job belongs to one part, by the requests in flight then.
    The mean time is divided in the same proportion. The job begins here with the first write of the
    log, and ends with the last one, or with a later flush. With one thread a part is the wait of its
    writes. With several, a flush of one may hide another's request on the link.
    """

    zil_ms: Measure = 0.0
    """Writes of the log, or of data that it points to, were in flight, and no flush was."""
    flush_ms: Measure = 0.0
    """Flushes were in flight on the disks that have the log, and no write of the log was."""
    both_ms: Measure = 0.0
    rest_ms: Measure = 0.0
    """Neither: client, link and NAS."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WritePath(Document):
    """The counts of one job, and of the transaction groups that it caused."""

    places: dict[str, Traffic] = field(default_factory=dict)
    """By `torture.facts.speed.written_places.PathPlace`. Trims, and writes of zeroes, are left out."""
    flushes: dict[str, Traffic] = field(default_factory=dict)
    """By disk."""
    client_operations: Measure = 0.0
    client_bytes: Measure = 0.0
    amplification: Measure | None = None
    """Bytes written to all disks by bytes that the client wrote; None where it wrote nothing."""
    flushes_per_operation: Measure | None = None
    """Flushes until the job's end, of disks that have the log, by synchronous operations.

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
    path = _Waiting(span=span, answering=_answering(recording, shape.logs))
    flushed = sum(path.is_answering(one) for one in flushes)
    is_sync = work.sync_ms is not None and work.operations > 0
    waited = [one for one in requests if places.get(one.event.seq) in WAITED_FOR]
    return WritePath(
        places=by_place,
        flushes=by_disk,
        client_operations=round(work.operations, _DIGITS),
        client_bytes=round(work.bytes, _DIGITS),
        amplification=round(written / work.bytes, _DIGITS) if work.bytes else None,
        flushes_per_operation=round(flushed / work.operations, _DIGITS) if is_sync else None,
        wait=path.divided(work.sync_ms or 0.0, waited, flushes) if is_sync else None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """A submission, and the time of its completion, if it has one."""

    event: Event
    end_ns: int | None

    @property
    def span(self) -> Span | None:
        return None if self.end_ns is None else (self.event.time_ns, self.end_ns)


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
class _Waiting:
    """The requests that a synchronous write may wait for."""

    span: JobSpan
    answering: frozenset[int]

    def is_answering(self, request: _Request) -> bool:
        """Whether it went to a disk that has the log before the job's end."""
        event = request.event
        return event.disk in self.answering and event.seq <= self.span.ended

    def divided(
        self, mean_ms: float, waited: Iterable[_Request], flushes: Iterable[_Request]
    ) -> SyncWait:
        """The parts of a mean time; see `SyncWait`."""
        zil = union_of(self._spans(one for one in waited if one.event.seq <= self.span.ended))
        if not zil:
            return SyncWait(rest_ms=round(mean_ms, _DIGITS))
        begin_ns = zil[0][0]
        flushed = union_of(
            (max(start, begin_ns), end)
            for start, end in self._spans(one for one in flushes if self.is_answering(one))
        )
        whole = max(end for _, end in [*zil, *flushed]) - begin_ns
        both = shared_by(zil, flushed)
        parts = (length_of(zil) - both, length_of(flushed) - both, both)
        zil_ms, flush_ms, both_ms = (round(mean_ms * part / whole, _DIGITS) for part in parts)
        return SyncWait(
            zil_ms=zil_ms,
            flush_ms=flush_ms,
            both_ms=both_ms,
            rest_ms=round(max(mean_ms - zil_ms - flush_ms - both_ms, 0.0), _DIGITS),
        )

    def _spans(self, requests: Iterable[_Request]) -> Iterator[Span]:
        return (span for one in requests if (span := one.span) is not None)
