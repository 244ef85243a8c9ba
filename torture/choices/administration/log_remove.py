"""`zpool remove` of a log device, under synchronous writes.

zpool-remove(8). Durable by return: `spa_vdev_remove_log` empties it and waits for its groups, and
`spa_vdev_exit` for the one with the new configuration (OpenZFS `module/zfs/vdev_removal.c`).
"""

from __future__ import annotations

from torture.choices.administration._copying import UNLABELLED
from torture.choices.administration.protocol import (
    BY_ID,
    SOON,
    Administration,
    Outcome,
    Printed,
    blocks,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep

_LOG = "slog0"


def read(printed: Printed) -> Outcome:
    """Judge by the pool's log devices."""
    if any(_LOG in name for name in printed.tops("logs")):
        return Outcome.UNDONE
    return Outcome.HALF if printed.has_disk(_LOG) else Outcome.DONE


ADMINISTRATION = Administration(
    name="log_remove",
    words="a log device is removed",
    explained="`zpool remove` of a log device",
    sweep=Sweep.ADMINISTRATION_OF_LOGS,
    script=f"zpool remove {POOL} {BY_ID}{_LOG}",
    read=read,
    needs_log_device=True,
    waived=UNLABELLED,
    start=(uberblocks(most=8), SOON),
    amid=(uberblocks(least=4, most=24), blocks(disk="data0", least=20, most=300)),
)
