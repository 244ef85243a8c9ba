"""The acknowledged operations that a cut may take, where theory lets it take any.

ZFS fills a transaction group, and later writes it as a whole. So an operation that began after the first
write of the last committed group is in no committed group. Then the intent log alone can vouch for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torture.facts.recording.events import Recording
from torture.oracles.audit.coverage import Coverage
from torture.oracles.audit.logged import Logged
from torture.oracles.audit.operations import Acknowledged

_LATELY_MS = 1_000
_NS_PER_MS = 1_000_000


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
