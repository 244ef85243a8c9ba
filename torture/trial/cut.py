"""The cut scheduler: when the NAS loses power, drawn from the trial's seed (pure).

A moment drawn evenly over the load would often find the NAS idle between two writes, where no
setting can lose anything. Most cuts therefore wait for an operation to begin and strike a little
later, while its writes and flushes are on their way; the rest fall anywhere.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Any

_IN_FLIGHT_SHARE = 0.8
_EARLIEST_SHARE_OF_LOAD = 0.25
_AFTER_BEGIN_MS_MAX = 40.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CutPlan:
    """Cut `after_ms` into the load; with `after_begin_ms`, that long after the next operation began."""

    after_ms: float
    after_begin_ms: float | None

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def draw_cut(*, seed: int, load_ms: int) -> CutPlan:
    """The plan of this seed for a load phase of `load_ms`; it never falls after the phase."""
    generator = random.Random(f"cut/{seed}")
    after_ms = generator.uniform(_EARLIEST_SHARE_OF_LOAD, 1.0) * load_ms
    in_flight = generator.random() < _IN_FLIGHT_SHARE
    after_begin_ms = generator.uniform(0.0, _AFTER_BEGIN_MS_MAX)
    return CutPlan(after_ms=after_ms, after_begin_ms=after_begin_ms if in_flight else None)
