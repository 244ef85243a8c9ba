"""The cut scheduler: when the NAS loses power, drawn from the trial's seed (pure).

A moment drawn evenly over the load would often find the NAS idle between two writes, where no
setting can lose anything. Most cuts therefore take aim at a step of ZFS's write path, and strike with it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from torture.recording.events import Kind
from torture.recording.roles import Role

_EARLIEST_SHARE_OF_LOAD = 0.25
_AFTER_BEGIN_MS_MAX = 40.0


class Aim(StrEnum):
    """What the cut waits for once its moment has come. A flush is called after what it is for."""

    ANYWHERE = "anywhere"
    """Nothing."""
    OPERATION = "operation"
    """The client begins an operation; the cut strikes a little later, amid its writes."""
    ZIL_SUBMITTED = "zil-submitted"
    ZIL_COMPLETED = "zil-completed"
    ZIL_FLUSHING = "zil-flushing"
    ZIL_FLUSHED = "zil-flushed"
    DATA_SUBMITTED = "data-submitted"
    DATA_COMPLETED = "data-completed"
    METADATA_SUBMITTED = "metadata-submitted"
    METADATA_COMPLETED = "metadata-completed"
    TXG_FLUSHING = "txg-flushing"
    TXG_FLUSHED = "txg-flushed"
    UBERBLOCK_SUBMITTED = "uberblock-submitted"
    UBERBLOCK_COMPLETED = "uberblock-completed"
    UBERBLOCK_FLUSHING = "uberblock-flushing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """An event on the NAS's disks to strike with: the n-th from the moment on, n at most `count_max`."""

    event: Kind
    role: Role
    count_max: int


TARGETS = {
    Aim.ZIL_SUBMITTED: Target(event=Kind.WRITE_SUBMIT, role=Role.ZIL, count_max=12),
    Aim.ZIL_COMPLETED: Target(event=Kind.WRITE_COMPLETE, role=Role.ZIL, count_max=12),
    Aim.ZIL_FLUSHING: Target(event=Kind.FLUSH_SUBMIT, role=Role.ZIL, count_max=4),
    Aim.ZIL_FLUSHED: Target(event=Kind.FLUSH_COMPLETE, role=Role.ZIL, count_max=4),
    Aim.DATA_SUBMITTED: Target(event=Kind.WRITE_SUBMIT, role=Role.DATA, count_max=20),
    Aim.DATA_COMPLETED: Target(event=Kind.WRITE_COMPLETE, role=Role.DATA, count_max=20),
    Aim.METADATA_SUBMITTED: Target(event=Kind.WRITE_SUBMIT, role=Role.METADATA, count_max=30),
    Aim.METADATA_COMPLETED: Target(event=Kind.WRITE_COMPLETE, role=Role.METADATA, count_max=30),
    Aim.TXG_FLUSHING: Target(event=Kind.FLUSH_SUBMIT, role=Role.METADATA, count_max=1),
    Aim.TXG_FLUSHED: Target(event=Kind.FLUSH_COMPLETE, role=Role.METADATA, count_max=1),
    Aim.UBERBLOCK_SUBMITTED: Target(event=Kind.WRITE_SUBMIT, role=Role.UBERBLOCK, count_max=4),
    Aim.UBERBLOCK_COMPLETED: Target(event=Kind.WRITE_COMPLETE, role=Role.UBERBLOCK, count_max=4),
    Aim.UBERBLOCK_FLUSHING: Target(event=Kind.FLUSH_SUBMIT, role=Role.UBERBLOCK, count_max=1),
}
"""A transaction group of the ledger load has 2 to 100 writes of data and then 30 or so of metadata."""

_WEIGHTS = {
    Aim.ANYWHERE: 8, Aim.OPERATION: 12,
    Aim.ZIL_SUBMITTED: 12, Aim.ZIL_COMPLETED: 8, Aim.ZIL_FLUSHING: 8, Aim.ZIL_FLUSHED: 4,
    Aim.DATA_SUBMITTED: 6, Aim.DATA_COMPLETED: 6,
    Aim.METADATA_SUBMITTED: 6, Aim.METADATA_COMPLETED: 6,
    Aim.TXG_FLUSHING: 6, Aim.TXG_FLUSHED: 4,
    Aim.UBERBLOCK_SUBMITTED: 6, Aim.UBERBLOCK_COMPLETED: 5, Aim.UBERBLOCK_FLUSHING: 3,
}  # fmt: skip
"""In per cent: so each phase gets its share, and a quarter of the cuts finds a write in flight. Half of
them wait for a transaction group, which is 5 s away at most; the intent log is never far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CutPlan:
    """Take aim `after_ms` into the load, and strike when what is aimed at comes.

    That is with the `count`-th event of its target, or `delay_ms` after an operation's begin.
    """

    after_ms: float
    aim: Aim
    delay_ms: float
    count: int

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The plan of `as_json`'s data; raises `ValueError`, `KeyError`, `TypeError`."""
        return cls(
            after_ms=float(data["after_ms"]),
            aim=Aim(data["aim"]),
            delay_ms=float(data["delay_ms"]),
            count=int(data["count"]),
        )


def draw_cut(*, seed: int, load_ms: int, has_intent_log: bool) -> CutPlan:
    """The plan of this seed for a load phase of `load_ms`; it takes aim before the phase is over.

    Without an intent log (sync=disabled) nothing is aimed at it.
    """
    generator = random.Random(f"cut/{seed}")
    after_ms = generator.uniform(_EARLIEST_SHARE_OF_LOAD, 1.0) * load_ms
    weights = {
        aim: weight
        for aim, weight in _WEIGHTS.items()
        if has_intent_log or aim not in TARGETS or TARGETS[aim].role is not Role.ZIL
    }
    [aim] = generator.choices(list(weights), list(weights.values()))
    delay_ms = generator.uniform(0.0, _AFTER_BEGIN_MS_MAX)
    return CutPlan(
        after_ms=after_ms,
        aim=aim,
        delay_ms=delay_ms if aim is Aim.OPERATION else 0.0,
        count=generator.randint(1, TARGETS[aim].count_max) if aim in TARGETS else 0,
    )
