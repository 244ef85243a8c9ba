"""When a recording's log began, by the host's clock: what else was timed can then be laid beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class LogClock:
    """The host's time at which the log's clock was 0, and by how much that may be wrong."""

    began_ns: int
    error_ns: int


def clock_of(spans: Sequence[tuple[int, int]], heard_ns: Sequence[int]) -> LogClock | None:
    """The clock of a log, by marks: when each was sent and acknowledged, and the log's time of each.

    Every mark was heard between these two: all together leave some tens of microseconds. None without
    marks, and when they contradict each other, because the host's clock was set meanwhile.
    """
    pairs = list(zip(spans, heard_ns, strict=False))
    if not pairs:
        return None
    earliest = max(sent_ns - log_ns for (sent_ns, _), log_ns in pairs)
    latest = min(acknowledged_ns - log_ns for (_, acknowledged_ns), log_ns in pairs)
    if earliest > latest:
        return None
    middle = (earliest + latest) // 2
    return LogClock(began_ns=middle, error_ns=latest - middle)
