"""`zpool remove` of a top-level vdev: all its data are copied to the other one.

zpool-remove(8). Durable by return: the start of the removal goes into the group that
`spa_vdev_exit` waits for (OpenZFS `module/zfs/vdev_removal.c`, `spa_vdev_remove_top`). The copying
continues after the return, and after an import.
"""

from __future__ import annotations

from torture.choices.administration._copying import UNLABELLED
from torture.choices.administration._datasets import ballast_script
from torture.choices.administration.protocol import (
    BY_ID,
    SOON,
    SPARE,
    Administration,
    Outcome,
    Printed,
    blocks,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.layout import Layout
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError


def read(printed: Printed) -> Outcome:
    """Judge by the vdev, and by its removal in `zpool status`."""
    removal = printed.pool().get("removal_stats")
    state = removal.get("state") if isinstance(removal, dict) else None
    if removal is not None and not isinstance(state, str):
        raise UnreadableError("zpool status -j: a removal without a state")
    is_there = any(name.endswith(SPARE) for name in printed.tops())
    if is_there and state == "SCANNING":
        return Outcome.GOING_ON
    if is_there:
        return Outcome.UNDONE if state in (None, "NONE") else Outcome.HALF
    return Outcome.DONE if state == "FINISHED" else Outcome.HALF


ADMINISTRATION = Administration(
    name="remove",
    words="a vdev is removed",
    explained="`zpool remove` of one of two disks",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool remove {POOL} {BY_ID}{SPARE}",
    read=read,
    activity="remove",
    prepare=(f"set -eu; zpool add -f {POOL} {BY_ID}{SPARE}; {ballast_script(mib=64)}"),
    spares=1,
    layouts=frozenset({Layout.SINGLE}),
    moves_blocks=True,
    waived=UNLABELLED,
    start=(uberblocks(most=12), SOON),
    amid=(blocks(disk="data0", least=40, most=400),),
)
