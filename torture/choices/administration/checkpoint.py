"""`zpool checkpoint`: the pool's state is kept as it is.

zpool-checkpoint(8). Durable by return: `spa_checkpoint` waits for its group in `dsl_early_sync_task`
(OpenZFS `module/zfs/spa_checkpoint.c`, `dsl_synctask.c`).
"""

from __future__ import annotations

from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError


def state_of_checkpoint(printed: Printed) -> str:
    """`EXISTS`, `DISCARDING`, or `NONE`; raises `UnreadableError`."""
    stats = printed.pool().get("checkpoint_stats")
    if stats is None:
        return "NONE"
    state = stats.get("state") if isinstance(stats, dict) else None
    if state not in ("NONE", "EXISTS", "DISCARDING"):
        raise UnreadableError(f"zpool status -j: a checkpoint in the unknown state {state!r}")
    return str(state)


def read(printed: Printed) -> Outcome:
    """Judge by the checkpoint in `zpool status`."""
    states = {"EXISTS": Outcome.DONE, "NONE": Outcome.UNDONE}
    return states.get(state_of_checkpoint(printed), Outcome.HALF)


ADMINISTRATION = Administration(
    name="checkpoint",
    words="a checkpoint is made",
    explained="`zpool checkpoint`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool checkpoint {POOL}",
    read=read,
)
