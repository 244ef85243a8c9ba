"""`zpool checkpoint -d`: blocks that only the checkpoint kept are freed.

zpool-checkpoint(8). Durable by return, as `checkpoint` is. The freeing continues after the return,
and after an import (OpenZFS `module/zfs/spa_checkpoint.c`, `spa_checkpoint_discard_thread`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import BALLAST, ballast_script
from torture.choices.administration.checkpoint import state_of_checkpoint
from torture.choices.administration.protocol import (
    SOON,
    Administration,
    Outcome,
    Printed,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep

_OUTCOMES = {
    "EXISTS": Outcome.UNDONE,
    "DISCARDING": Outcome.GOING_ON,
    "NONE": Outcome.DONE,
}


def read(printed: Printed) -> Outcome:
    """Judge by the checkpoint in `zpool status`."""
    return _OUTCOMES[state_of_checkpoint(printed)]


ADMINISTRATION = Administration(
    name="checkpoint_discard",
    words="a checkpoint is discarded",
    explained="`zpool checkpoint -d`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool checkpoint -d {POOL}",
    read=read,
    activity="discard",
    prepare=(
        f"{ballast_script(mib=32)}; zpool checkpoint {POOL}; rm /{BALLAST}/ballast; "
        f"zpool sync {POOL}"
    ),
    start=(SOON, uberblocks(most=8)),
    amid=(uberblocks(least=4, most=24),),
)
