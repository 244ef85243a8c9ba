"""The cut scheduler draws the moment of the NAS's power loss from the trial's seed (pure).

A moment drawn evenly over the load would often find the NAS idle between two writes. No setting can
lose data there. So most cuts take aim at a step of ZFS's write path, and strike with this step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from torture.facts.evidence.documents import Document, replace
from torture.facts.recording.events import Kind
from torture.facts.recording.intent_log import Role
from torture.machines.nas.pool import DIRTY_LABELS, FREE_LOG, TRIM

_EARLIEST_SHARE_OF_LOAD = 0.25


class Aim(StrEnum):
    """The event that the cut awaits once its moment has come.

    A flush has the name of the data that it is for.
    """

    ANYWHERE = "anywhere"
    """Nothing."""
    OPERATION = "operation"
    """The client begins an operation. The cut strikes a little later, amid its writes."""
    ACKNOWLEDGED = "acknowledged"
    """A durable operation was acknowledged. The cut strikes 1 to 2 ms later. So it takes the data
    about which a disk or a flush lied, before the next flush makes them durable. Not in draw 1."""
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
    ZIL_SEVERAL = "zil-several"
    """ZFS submits a block of the intent log while another block is not covered."""
    ZIL_REUSED = "zil-reused"
    """ZFS writes a block of the intent log to the place of an older one."""
    LABEL_SUBMITTED = "label-submitted"
    LABEL_FLUSHING = "label-flushing"
    TRIM_SUBMITTED = "trim-submitted"
    TRIM_COMPLETED = "trim-completed"


_DELAYS_MS = {Aim.OPERATION: (0.0, 40.0), Aim.ACKNOWLEDGED: (1.0, 2.0)}
"""The time from the target until the cut with this aim."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """An event on the NAS's disks: the cut strikes with the n-th one, n at most `count_max`.

    The count begins at the cut's moment.
    """

    event: Kind
    role: Role | None
    """None where the event is no write's and no flush's."""
    count_max: int
    zil_uncovered: int = 0
    """Only while this number of blocks of the intent log are uncovered on a disk."""
    is_zil_reused: bool = False
    """Only with a block of the intent log in the place of an older one."""
    warm_up: tuple[str, ...] = ()
    """The NAS runs these before the cut takes aim: a load alone would not cause the event."""
    stir: tuple[str, ...] = ()
    """The NAS runs these beside the load, while the trial waits for the event."""


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
    Aim.ZIL_SEVERAL: Target(event=Kind.WRITE_SUBMIT, role=Role.ZIL, count_max=2, zil_uncovered=2),
    Aim.ZIL_REUSED: Target(
        event=Kind.WRITE_COMPLETE, role=Role.ZIL, count_max=1, is_zil_reused=True, warm_up=FREE_LOG
    ),
    Aim.LABEL_SUBMITTED: Target(
        event=Kind.WRITE_SUBMIT, role=Role.LABEL, count_max=6, stir=DIRTY_LABELS
    ),
    Aim.LABEL_FLUSHING: Target(
        event=Kind.FLUSH_SUBMIT, role=Role.LABEL, count_max=3, stir=DIRTY_LABELS
    ),
    Aim.TRIM_SUBMITTED: Target(event=Kind.TRIM_SUBMIT, role=None, count_max=8, stir=TRIM),
    Aim.TRIM_COMPLETED: Target(event=Kind.TRIM_COMPLETE, role=None, count_max=8, stir=TRIM),
}
"""A transaction group of the ledger load has 2 to 100 writes of data and then 30 or so of metadata."""

_WEIGHTS_OF_DRAW_1 = {
    Aim.ANYWHERE: 8, Aim.OPERATION: 8,
    Aim.ZIL_SUBMITTED: 8, Aim.ZIL_COMPLETED: 6, Aim.ZIL_FLUSHING: 6, Aim.ZIL_FLUSHED: 4,
    Aim.DATA_SUBMITTED: 5, Aim.DATA_COMPLETED: 5,
    Aim.METADATA_SUBMITTED: 4, Aim.METADATA_COMPLETED: 4,
    Aim.TXG_FLUSHING: 5, Aim.TXG_FLUSHED: 4,
    Aim.UBERBLOCK_SUBMITTED: 4, Aim.UBERBLOCK_COMPLETED: 4, Aim.UBERBLOCK_FLUSHING: 3,
    Aim.ZIL_SEVERAL: 5, Aim.ZIL_REUSED: 6,
    Aim.LABEL_SUBMITTED: 3, Aim.LABEL_FLUSHING: 2,
    Aim.TRIM_SUBMITTED: 3, Aim.TRIM_COMPLETED: 3,
}  # fmt: skip
"""In per cent. Each phase gets its share, and a quarter of the cuts finds a write in flight. Half
of them wait for a transaction group, which is 5 s away at most. The intent log is never far.

With these weights, 170 cuts fell in phases (`torture.oracles.audit.commits`). The rarest phases have
5 % of the cuts that can have them: a label written, a place of the intent log used again. An aim
may strike beside its own step. The cut is then reported as the phase nearer to the uberblock: 1 of
6 aims at reused blocks, 1 of 3 at several.
"""

_WEIGHTS = _WEIGHTS_OF_DRAW_1 | {
    Aim.ACKNOWLEDGED: 9, Aim.ANYWHERE: 5, Aim.OPERATION: 6, Aim.ZIL_SUBMITTED: 7,
    Aim.DATA_SUBMITTED: 4, Aim.METADATA_SUBMITTED: 3, Aim.TXG_FLUSHING: 4,
}  # fmt: skip
"""The last acknowledgement was a median of 92 ms old at the cuts of draw 1."""


class CutPlan(Document, frozen=True, kw_only=True):
    """Take aim `after_ms` into the load, and strike when the target comes.

    A cut strikes with the `count`-th event of its target, or `delay_ms` after an operation's begin
    or end.
    """

    after_ms: float
    aim: Aim
    delay_ms: float
    count: int


def aimed_at(cut: CutPlan, aim: Aim, *, seed: int) -> CutPlan:
    """The cut of this seed with another aim, which is not an event of a disk."""
    if aim in TARGETS:
        raise ValueError(f"a fault cannot choose {aim}")
    share = random.Random(f"aim/{seed}").random()
    return replace(cut, aim=aim, delay_ms=_delay_ms(aim, share), count=0)


def _delay_ms(aim: Aim, share: float) -> float:
    first, last = _DELAYS_MS.get(aim, (0.0, 0.0))
    return first + share * (last - first)


def draw_cut(*, seed: int, load_ms: int, has_intent_log: bool, draw: int) -> CutPlan:
    """The plan of this seed for a load phase of `load_ms`; it takes aim before the phase is over.

    Without an intent log (sync=disabled) no cut aims at it. `draw`: as `TrialSpec` has it.
    """
    generator = random.Random(f"cut/{seed}")
    after_ms = generator.uniform(_EARLIEST_SHARE_OF_LOAD, 1.0) * load_ms
    weights = {
        aim: weight
        for aim, weight in (_WEIGHTS_OF_DRAW_1 if draw == 1 else _WEIGHTS).items()
        if has_intent_log or aim not in TARGETS or TARGETS[aim].role is not Role.ZIL
    }
    [aim] = generator.choices(list(weights), list(weights.values()))
    share = generator.random()
    return CutPlan(
        after_ms=after_ms,
        aim=aim,
        delay_ms=_delay_ms(aim, share),
        count=generator.randint(1, TARGETS[aim].count_max) if aim in TARGETS else 0,
    )
