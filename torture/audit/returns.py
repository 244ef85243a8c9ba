"""When the client's durable calls returned, in the time of the NAS's log.

An acknowledgement reaches the log with its mark, some 20 ms after the call returned: until then the next
flush may make up for one that was left out. So each line of the load says by the guest's clock when its
call returned, when it was sent, and when an answer was heard. A line was sent before its mark was heard,
and an answer was heard after the mark that it answers: together these lay one clock beside the other.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

from torture.evidence.strict_json import strict_json
from torture.evidence.typed import number_of, whole_of
from torture.recording.events import Kind, Recording

_NS_PER_MS = 1_000_000
_WINDOW_NS = 500 * _NS_PER_MS
"""Two clocks drift apart: only marks so near are laid beside a return."""
_DRIFT_SHARE = 0.0005
"""Of the time between two readings: a guest measures how fast its clock is, and is so much wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Returned:
    """A call returned at some time between these, by the log's clock."""

    earliest_ns: int
    latest_ns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """What a mark says of the difference of the clocks, log less guest."""

    at_ns: int
    least_ns: float | None
    most_ns: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Returns:
    """When an operation's last call returned, and each that made, moved or removed a name began and did.

    What cannot be told is left out.
    """

    last: Returned | None
    named: tuple[tuple[Returned, Returned], ...] = ()


def returns_in(recording: Recording, *, cut: int) -> dict[int, Returns]:
    """The returns of each operation, by its number; raises what `Recording.payload` raises."""
    readings: list[_Reading] = []
    told: dict[int, tuple[int, float, list[tuple[float, float]]]] = {}
    heard_at_ns: dict[int, int | None] = {}
    for event in recording.events[: cut + 1]:
        if event.kind is not Kind.MARK:
            continue
        line = _line_in(recording.payload(event))
        seq, guest_ms = whole_of(line, "seq"), number_of(line, "guest_ms")
        if guest_ms is None:
            continue
        readings.append(_reading(line, guest_ms, at_ns=event.time_ns, heard_at_ns=heard_at_ns))
        if seq is None:
            continue
        # a writer's first operation is answered twice, and an answer says no more than its number
        is_first = line.get("event") == "begin" or seq in heard_at_ns
        heard_at_ns[seq] = None if is_first else event.time_ns
        if (returned_ms := number_of(line, "returned_ms")) is not None:
            told[seq] = (event.time_ns, returned_ms, _named_in(line))
    return {
        seq: _returns(readings, at_ns=at_ns, returned_ms=returned_ms, named_ms=named_ms)
        for seq, (at_ns, returned_ms, named_ms) in told.items()
    }


def _returns(
    readings: list[_Reading],
    *,
    at_ns: int,
    returned_ms: float,
    named_ms: list[tuple[float, float]],
) -> Returns:
    def by_the_log(guest_ms: float) -> Returned | None:
        return _laid_beside(readings, at_ns=at_ns, guest_ns=guest_ms * _NS_PER_MS)

    spans = [tuple(map(by_the_log, span)) for span in named_ms]
    named = tuple((begun, done) for begun, done in spans if begun is not None and done is not None)
    return Returns(last=by_the_log(returned_ms), named=named)


def _named_in(line: dict[str, Any]) -> list[tuple[float, float]]:
    """The spans of the calls that changed a name; none where the line has no such list."""
    spans = line.get("named_ms")
    if not isinstance(spans, list):
        return []
    pairs = [span for span in spans if isinstance(span, list) and len(span) == len(("from", "to"))]
    return [(begun, done) for begun, done in pairs if _is_time(begun) and _is_time(done)]


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _reading(
    line: dict[str, Any], guest_ms: float, *, at_ns: int, heard_at_ns: dict[int, int | None]
) -> _Reading:
    least_ns = None
    answered_ms = number_of(line, "answered_ms")
    answered_seq = whole_of(line, "answered_seq")
    answered_at_ns = None if answered_seq is None else heard_at_ns.get(answered_seq)
    if answered_ms is not None and answered_at_ns is not None:
        least_ns = answered_at_ns - answered_ms * _NS_PER_MS
    return _Reading(at_ns=at_ns, least_ns=least_ns, most_ns=at_ns - guest_ms * _NS_PER_MS)


def _laid_beside(readings: list[_Reading], *, at_ns: int, guest_ns: float) -> Returned | None:
    first = bisect_left(readings, at_ns - _WINDOW_NS, key=_at_ns)
    end = bisect_right(readings, at_ns + _WINDOW_NS, key=_at_ns)
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


def _at_ns(reading: _Reading) -> int:
    return reading.at_ns


def _line_in(payload: bytes) -> dict[str, Any]:
    try:
        line = strict_json(payload)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}
