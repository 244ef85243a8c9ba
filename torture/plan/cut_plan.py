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
    WRITE = "write"
    """The NAS's disks have completed some writes more: the pool is writing its log or a txg."""
    FLUSH = "flush"
    """The NAS has asked a disk to flush, and waits: everything written for it is still uncovered."""


_WEIGHTS = {Aim.ANYWHERE: 20, Aim.OPERATION: 30, Aim.WRITE: 30, Aim.FLUSH: 20}
_WRITES_MAX, _FLUSHES_MAX = 12, 4


@dataclass(frozen=True, kw_only=True, slots=True)
class CutPlan:
    """Take aim `after_ms` into the load, and strike when what is aimed at comes.

    That is with the `count`-th write or flush, or `delay_ms` after an operation's begin.
    """

    after_ms: float
    aim: Aim
    delay_ms: float
    count: int

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def draw_cut(*, seed: int, load_ms: int) -> CutPlan:
    """The plan of this seed for a load phase of `load_ms`; it takes aim before the phase is over."""
    generator = random.Random(f"cut/{seed}")
    after_ms = generator.uniform(_EARLIEST_SHARE_OF_LOAD, 1.0) * load_ms
    [aim] = generator.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    delay_ms = generator.uniform(0.0, _AFTER_BEGIN_MS_MAX)
    count = {
        Aim.WRITE: generator.randint(1, _WRITES_MAX),
        Aim.FLUSH: generator.randint(1, _FLUSHES_MAX),
    }
    return CutPlan(
        after_ms=after_ms,
        aim=aim,
        delay_ms=delay_ms if aim is Aim.OPERATION else 0.0,
        count=count.get(aim, 0),
    )
