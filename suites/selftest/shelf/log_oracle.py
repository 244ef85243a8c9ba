"""Whether a log agrees with the client's view: nothing lost, nothing invented, in a possible order.

A client knows an order only in part: what it had seen acknowledged before it issued the next request
ended before that was submitted. Requests that look alike (two flushes of one disk) are distinguished no
further than that.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from suites.selftest.shelf.requests import SUBMISSION_OF, Difference, Request, Verb
from suites.selftest.shelf.session import SessionDisk
from suites.selftest.unit.facts.shelf_logs import COMPLETION_OF
from torture.facts.recording.events import (
    RECORD_BYTES,
    WRITE_COMPLETES,
    WRITE_SUBMITS,
    Event,
    Kind,
    Recording,
)

_SECTOR = 512
Look = tuple[Kind, int | None, int, int, bool, bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Logged:
    """A request as the log has it: the numbers of its first and its last event."""

    first: int
    last: float
    """Infinite when it was not completed."""


class Order:
    """The times of other requests by those that cannot be mistaken for others."""

    def __init__(self, known: Iterable[tuple[Request, Logged]]) -> None:
        self._known = tuple(known)
        ended = sorted(
            (request.acked, int(logged.last))
            for request, logged in self._known
            if request.acked is not None and logged.last < math.inf
        )
        begun = sorted(
            ((request.issued, logged.first) for request, logged in self._known), reverse=True
        )
        self._ended_ticks = [tick for tick, _ in ended]
        self._ended = [0, *accumulate((last for _, last in ended), max)]
        self._begun_ticks = [-tick for tick, _ in begun]
        self._begun = [math.inf, *accumulate((first for _, first in begun), min)]

    def floor(self, tick: int) -> int:
        """The last event that was before the client's `tick`."""
        return self._ended[bisect_left(self._ended_ticks, tick)]

    def ceiling(self, tick: int | None) -> float:
        """The first event that was after the client's `tick`."""
        if tick is None:
            return math.inf
        return self._begun[bisect_left(self._begun_ticks, -tick)]

    def must_hold(self) -> None:
        """Raise `Difference` when the known requests themselves contradict it."""
        for request, logged in self._known:
            if logged.first <= self.floor(request.issued):
                raise Difference(f"{request} was submitted ({logged.first}) before it was issued")
            if request.acked is not None and logged.last == math.inf:
                raise Difference(f"{request}, submission {logged.first}, was never completed")


def check_log(
    recording: Recording, disks: Sequence[SessionDisk], requests: Sequence[Request]
) -> Order:
    """Raise `Difference` unless the log tells what the client saw; returns what order that was."""
    events = recording.events
    _check_events(events)
    _check_end(recording)
    looks = _by_look(recording)
    wanted: dict[Look, list[Request]] = defaultdict(list)
    for request in requests:
        if request.verb in SUBMISSION_OF:
            kind = SUBMISSION_OF[request.verb]
            look = (
                kind, request.disk, request.offset, request.length, request.fua, request.payload
            )  # fmt: skip
            wanted[look].append(request)
    for look, logged in looks.items():
        if look not in wanted:
            raise Difference(f"no client asked for {look[:5]} of event {logged[0].first}")
    for look, alike in wanted.items():
        if look not in looks and any(request.acked is not None for request in alike):
            raise Difference(f"acknowledged, and not in the log: {alike[0]}")
    order = Order(
        (alike[0], looks[look][0])
        for look, alike in wanted.items()
        if len(alike) == 1 == len(looks.get(look, ()))
    )
    order.must_hold()
    for look, alike in wanted.items():
        _check_alike(alike, looks.get(look, []), order)
    _check_reads(recording, disks, requests, order)
    return order


def _check_events(events: Sequence[Event]) -> None:
    in_flight: set[int] = set()
    flushes: set[int] = set()
    for event, following in pairwise([*events, events[-1]]):
        if event.time_ns > following.time_ns:
            raise Difference(f"time goes back after {event}")
        if event.error or event.kind is Kind.FAILED:
            raise Difference(f"nothing should have failed: {event}")
        if event.kind in WRITE_SUBMITS:
            in_flight.add(event.seq)
        elif event.kind is Kind.FLUSH_SUBMIT:
            flushes.add(event.seq)
        elif event.kind in COMPLETION_OF.values():
            is_open = in_flight if event.kind in WRITE_COMPLETES else flushes
            if event.reference not in is_open:
                raise Difference(f"completes nothing that is in flight: {event}")
            submission = events[event.reference]
            if COMPLETION_OF[submission.kind] is not event.kind or submission.disk != event.disk:
                raise Difference(f"completes something else: {event}, {submission}")
            is_open.remove(event.reference)
        if event.in_flight != len(in_flight):
            raise Difference(f"{len(in_flight)} are in flight, says the log, and then: {event}")


def _check_end(recording: Recording) -> None:
    """Nothing follows a freeze, whoever looks."""
    freezes = [event.seq for event in recording.events if event.kind is Kind.FREEZE]
    end = recording.events[-1].seq
    if freezes and freezes != [end]:
        raise Difference(f"frozen at {freezes}, and the last event is {end}")
    with (recording.folder / "log").open("rb") as log:
        log.seek((end + 1) * RECORD_BYTES)
        if any(rest := log.read(RECORD_BYTES)):
            raise Difference(f"after the last event {end} comes {rest.hex()}")


def _by_look(recording: Recording) -> dict[Look, list[Logged]]:
    """All requests in the log, those that look alike together."""
    data = (recording.folder / "data").read_bytes()
    ends = {
        event.reference: event.seq
        for event in recording.events
        if event.kind in COMPLETION_OF.values()
    }
    looks: dict[Look, list[Logged]] = defaultdict(list)
    for event in recording.events:
        if event.kind in COMPLETION_OF or event.kind is Kind.MARK:
            has_payload = event.kind in (Kind.WRITE_SUBMIT, Kind.MARK)
            content = data[event.reference : event.reference + event.length] if has_payload else b""
            if has_payload and zlib.crc32(content) != event.payload_crc:
                raise Difference(f"the payload is not that of its checksum: {event}")
            is_over = event.kind is Kind.MARK
            last = event.seq if is_over else ends.get(event.seq, math.inf)
            logged = Logged(first=event.seq, last=last)
            look = (event.kind, event.disk, event.offset, event.length, event.fua, content)
            looks[look].append(logged)
    return looks


def _check_alike(requests: Sequence[Request], logged: Sequence[Logged], order: Order) -> None:
    """Each one acknowledged is one in the log, and each one in the log is one that was issued."""
    windows = [(order.floor(request.issued), order.ceiling(request.acked)) for request in requests]
    fits = [
        [
            place
            for place, candidate in enumerate(logged)
            if floor < candidate.first
            and candidate.first < ceiling
            and (request.acked is None or candidate.last < ceiling)
            and (request.acked is None or candidate.last < math.inf)
        ]
        for request, (floor, ceiling) in zip(requests, windows, strict=True)
    ]
    acknowledged = [
        fit for request, fit in zip(requests, fits, strict=True) if request.acked is not None
    ]
    if not _each_finds_its_own(acknowledged):
        raise Difference(
            f"acknowledged, and the log has others: {[str(request) for request in requests]}, {logged}"
        )
    if not _each_finds_its_own(
        [[which for which, fit in enumerate(fits) if place in fit] for place in range(len(logged))]
    ):
        raise Difference(
            f"the log has more than was issued: {[str(request) for request in requests]}, {logged}"
        )


def _each_finds_its_own(fits: Sequence[Sequence[int]]) -> bool:
    """Whether each can have one of its places, no two of them the same (Kuhn's matching)."""
    owner: dict[int, int] = {}

    def find(who: int, tried: set[int]) -> bool:
        for place in fits[who]:
            if place not in tried:
                tried.add(place)
                if place not in owner or find(owner[place], tried):
                    owner[place] = who
                    return True
        return False

    return all(find(who, set()) for who in range(len(fits)))


def _check_reads(
    recording: Recording, disks: Sequence[SessionDisk], requests: Sequence[Request], order: Order
) -> None:
    """Every sector read is what some moment between issue and answer held."""
    data = (recording.folder / "data").read_bytes()
    events = recording.events
    for request in requests:
        if request.verb is not Verb.READ or request.acked is None or request.disk is None:
            continue
        floor, ceiling = order.floor(request.issued), order.ceiling(request.acked)
        held = bytearray(disks[request.disk].base)
        possible: dict[int, set[bytes]] = defaultdict(set)
        for event in events:
            if (
                event.kind not in WRITE_COMPLETES
                or event.disk != request.disk
                or event.seq >= ceiling
            ):
                continue
            write = events[event.reference]
            is_data = write.kind is Kind.WRITE_SUBMIT
            end = write.reference + write.length
            content = data[write.reference : end] if is_data else bytes(write.length)
            if event.seq <= floor:
                held[write.offset : write.offset + write.length] = content
                continue
            for start in range(0, write.length, _SECTOR):
                possible[write.offset + start].add(content[start : start + _SECTOR])
        for start in range(0, request.length, _SECTOR):
            at = request.offset + start
            got = request.data[start : start + _SECTOR]
            if got != held[at : at + _SECTOR] and got not in possible[at]:
                raise Difference(
                    f"{request}: at {at} it read {got[:16].hex()}, which was never there"
                )
