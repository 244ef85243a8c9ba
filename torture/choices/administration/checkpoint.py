"""`zpool checkpoint`: the pool's state is kept as it is. `-d`: blocks that only it kept are freed.

zpool-checkpoint(8). Durable by return: `spa_checkpoint` waits for its group in `dsl_early_sync_task`
(OpenZFS `module/zfs/spa_checkpoint.c`, `dsl_synctask.c`), and so does a discard. The freeing continues
after the return, and after an import (`spa_checkpoint_discard_thread`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import BALLAST, ballast_script
from torture.choices.administration.protocol import (
    SOON,
    Administration,
    Outcome,
    Printed,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError

_MADE = {"EXISTS": Outcome.DONE, "NONE": Outcome.UNDONE}
_DISCARDED = {
    "EXISTS": Outcome.UNDONE,
    "DISCARDING": Outcome.GOING_ON,
    "NONE": Outcome.DONE,
}


def _state_of(printed: Printed) -> str:
    """`EXISTS`, `DISCARDING`, or `NONE`; raises `UnreadableError`."""
    stats = printed.pool().get("checkpoint_stats")
    if stats is None:
        return "NONE"
    state = stats.get("state") if isinstance(stats, dict) else None
    if state not in ("NONE", "EXISTS", "DISCARDING"):
        raise UnreadableError(f"zpool status -j: a checkpoint in the unknown state {state!r}")
    return str(state)


def read_made(printed: Printed) -> Outcome:
    """Judge by the checkpoint in `zpool status`."""
    return _MADE.get(_state_of(printed), Outcome.HALF)


def read_discarded(printed: Printed) -> Outcome:
    """Judge by the checkpoint in `zpool status`."""
    return _DISCARDED[_state_of(printed)]


ADMINISTRATIONS = (
    Administration(
        name="checkpoint",
        words="a checkpoint is made",
        explained="`zpool checkpoint`",
        sweep=Sweep.ADMINISTRATION,
        script=f"zpool checkpoint {POOL}",
        read=read_made,
    ),
    Administration(
        name="checkpoint_discard",
        words="a checkpoint is discarded",
        explained="`zpool checkpoint -d`",
        sweep=Sweep.ADMINISTRATION,
        script=f"zpool checkpoint -d {POOL}",
        read=read_discarded,
        activity="discard",
        prepare=(
            f"{ballast_script(mib=32)}; zpool checkpoint {POOL}; rm /{BALLAST}/ballast; "
            f"zpool sync {POOL}"
        ),
        start=(SOON, uberblocks(most=8)),
        amid=(uberblocks(least=4, most=24),),
    ),
)
