"""When the client's durable calls returned, and the operations that a cut may take.

An acknowledgement reaches the recording with its mark, some ms after the call returned. In between, the
next flush may cover data that an omitted flush left out. So each line of the load has three times of
the guest's clock: its call's return, its sending, and the last answer's arrival. A line is sent before
its mark is recorded. An answer arrives after the mark that it answers. These two facts bound the
difference of the clocks.

ZFS fills a transaction group, and later writes it as a whole. So an operation that began after the first
write of the last committed group is in no committed group. Then the intent log alone can vouch for it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from torture.facts.evidence.documents import Count, Document, Finite, document_or_none, json_object
from torture.facts.recording.events import Kind, Recording
from torture.oracles.audit.commits import Coverage
from torture.oracles.audit.log_contents import Logged
from torture.oracles.audit.operations import Acknowledged

_NS_PER_MS = 1_000_000
_WINDOW_NS = 500 * _NS_PER_MS
"""Two clocks drift apart: only marks this near to a return are compared with it."""
_DRIFT_SHARE = 0.0005
"""The drift as a share of the time between two readings: a guest's measured clock rate is this wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Returned:
    """A call returned between these times, by the recording's clock."""

    earliest_ns: int
    latest_ns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """Bounds on the difference of the clocks, recording less guest, from one mark."""

    at_ns: int
    least_ns: float | None
    most_ns: float


class _Line(Document, frozen=True, kw_only=True):
    """The readings of the guest's clock in a line of the load."""

    event: str = ""
    seq: Count | None = None
    guest_ms: Finite
    returned_ms: Finite | None = None
    answered_ms: Finite | None = None
    answered_seq: Count | None = None


def returns_in(recording: Recording, *, cut: int) -> dict[int, Returned]:
    """When each operation's call returned; operations without clock readings near them are left out.

    Raises what `Recording.payload` raises.
    """
    readings: list[_Reading] = []
    returned_ms: dict[int, tuple[int, float]] = {}
    received_at_ns: dict[int, int | None] = {}
    for event in recording.events[: cut + 1]:
        if event.kind is not Kind.MARK:
            continue
        line = document_or_none(_Line, json_object(recording.payload(event)))
        if line is None:
            continue
        readings.append(_reading(line, at_ns=event.time_ns, received_at_ns=received_at_ns))
        if (seq := line.seq) is None:
            continue
        # a writer's first operation is answered twice, and an answer names only the operation
        is_first = line.event == "begin" or seq in received_at_ns
        received_at_ns[seq] = None if is_first else event.time_ns
        if line.returned_ms is not None:
            returned_ms[seq] = (event.time_ns, line.returned_ms)
    found = {
        seq: _in_log_time(readings, at_ns=at_ns, guest_ns=guest_ms * _NS_PER_MS)
        for seq, (at_ns, guest_ms) in returned_ms.items()
    }
    return {seq: returned for seq, returned in found.items() if returned is not None}


def _reading(line: _Line, *, at_ns: int, received_at_ns: dict[int, int | None]) -> _Reading:
    least_ns = None
    answered_at_ns = None if line.answered_seq is None else received_at_ns.get(line.answered_seq)
    if line.answered_ms is not None and answered_at_ns is not None:
        least_ns = answered_at_ns - line.answered_ms * _NS_PER_MS
    return _Reading(at_ns=at_ns, least_ns=least_ns, most_ns=at_ns - line.guest_ms * _NS_PER_MS)


def _in_log_time(readings: list[_Reading], *, at_ns: int, guest_ns: float) -> Returned | None:
    reading_ns = attrgetter("at_ns")
    first = bisect_left(readings, at_ns - _WINDOW_NS, key=reading_ns)
    end = bisect_right(readings, at_ns + _WINDOW_NS, key=reading_ns)
    near = readings[first:end]
    least_ns = max(
        (
            one.least_ns - abs(one.at_ns - at_ns) * _DRIFT_SHARE
            for one in near
            if one.least_ns is not None
        ),
        default=None,
    )
    most_ns = min((one.most_ns + abs(one.at_ns - at_ns) * _DRIFT_SHARE for one in near), default=0)
    if least_ns is None or least_ns > most_ns:
        return None
    return Returned(earliest_ns=int(guest_ns + least_ns), latest_ns=int(guest_ns + most_ns) + 1)


_LATELY_MS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class AtRisk:
    """The operations acknowledged before a cut."""

    lately: int
    """Those of the last second."""
    uncommitted: int | None
    """Those that began after the last committed group began to be written."""
    logged_ms: int | None
    """How long before the cut the newest of these became durable in the log, or was written there
    without a flush. None where that is unknown."""

    def marks_only(self) -> AtRisk:
        """The facts that do not depend on the role of a write."""
        return AtRisk(lately=self.lately, uncommitted=None, logged_ms=None)


def at_risk_in(
    recording: Recording,
    acknowledged: Iterable[Acknowledged],
    *,
    cut: int,
    committed: int,
    logged: Logged,
    coverages: Iterable[Coverage],
) -> AtRisk:
    """The operations at risk in a cut after event `cut`, by the coverages at that time.

    `committed`: the first write of the last committed transaction group.
    """
    events, now_ns = recording.events, recording.events[cut].time_ns
    covered_at = {
        write: events[at].time_ns for one in coverages for write, at in one.covered_at.items()
    }
    lately, uncommitted, logged_ns = 0, 0, list[int]()
    for one in acknowledged:
        lately += events[one.acknowledged].time_ns >= now_ns - _LATELY_MS * _NS_PER_MS
        if one.begun >= committed:
            uncommitted += 1
            blocks = logged.blocks_of(one.number)
            times = [covered_at.get(write, events[write].time_ns) for write in blocks]
            logged_ns += [max(times)] if times else []
    logged_ms = round((now_ns - max(logged_ns)) / _NS_PER_MS) if logged_ns else None
    return AtRisk(lately=lately, uncommitted=uncommitted, logged_ms=logged_ms)
