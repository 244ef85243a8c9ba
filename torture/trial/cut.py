"""The cut scheduler: when the NAS loses power, drawn from the trial's seed (pure).

A moment drawn evenly over the load would often find the NAS idle between two writes, where no
setting can lose anything. Most cuts therefore take aim, and strike while something is on its way.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

_EARLIEST_SHARE_OF_LOAD = 0.25
_AFTER_BEGIN_MS_MAX = 40.0


class Aim(StrEnum):
    """What the cut waits for once its moment has come."""

    ANYWHERE = "anywhere"
    """Nothing."""
    OPERATION = "operation"
    """The client begins an operation; the cut strikes a little later, amid its writes."""
    COMMIT = "commit"
    """The NAS's disks have a write that no flush covers yet: the pool is writing its log or a txg."""


_WEIGHTS = {Aim.ANYWHERE: 20, Aim.OPERATION: 40, Aim.COMMIT: 40}


@dataclass(frozen=True, kw_only=True, slots=True)
class CutPlan:
    """Take aim `after_ms` into the load, and strike `delay_ms` after what was waited for came."""

    after_ms: float
    aim: Aim
    delay_ms: float

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def draw_cut(*, seed: int, load_ms: int) -> CutPlan:
    """The plan of this seed for a load phase of `load_ms`; it takes aim before the phase is over."""
    generator = random.Random(f"cut/{seed}")
    after_ms = generator.uniform(_EARLIEST_SHARE_OF_LOAD, 1.0) * load_ms
    [aim] = generator.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    delay_ms = generator.uniform(0.0, _AFTER_BEGIN_MS_MAX)
    return CutPlan(after_ms=after_ms, aim=aim, delay_ms=delay_ms if aim is Aim.OPERATION else 0.0)
