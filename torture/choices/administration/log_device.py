"""`zpool add log` and `zpool remove` of a log device, under synchronous writes.

zpool-add(8). Durable by return: `spa_vdev_add` ends in `spa_vdev_exit`, which waits until its group
is synced (OpenZFS `module/zfs/spa.c`). From then on ZFS writes the intent log there. So after a cut
it replays the log from a device that has only just joined a pool that had none.

zpool-remove(8). Durable by return: `spa_vdev_remove_log` empties it and waits for its groups, and
`spa_vdev_exit` for the one with the new configuration (OpenZFS `module/zfs/vdev_removal.c`).
"""

from __future__ import annotations

from torture.choices.administration._copying import UNLABELLED
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
from torture.facts.axes.sweeps import Sweep

_LOG = "slog0"


def read_added(printed: Printed) -> Outcome:
    """Judge by the pool's log devices."""
    is_log = any(name.endswith(SPARE) for name in printed.tops("logs"))
    if is_log:
        return Outcome.DONE
    return Outcome.HALF if printed.has_disk(SPARE) else Outcome.UNDONE


def read_removed(printed: Printed) -> Outcome:
    """Judge by the pool's log devices."""
    if any(_LOG in name for name in printed.tops("logs")):
        return Outcome.UNDONE
    return Outcome.HALF if printed.has_disk(_LOG) else Outcome.DONE


ADMINISTRATIONS = (
    Administration(
        name="log_add",
        words="a log device is added",
        explained="`zpool add log`",
        sweep=Sweep.ADMINISTRATION,
        script=f"zpool add -f {POOL} log {BY_ID}{SPARE}",
        read=read_added,
        spares=1,
        needs_log_device=False,
        start=(uberblocks(most=8), SOON),
        amid=(blocks(disk=SPARE, most=30),),
    ),
    Administration(
        name="log_remove",
        words="a log device is removed",
        explained="`zpool remove` of a log device",
        sweep=Sweep.ADMINISTRATION_OF_LOGS,
        script=f"zpool remove {POOL} {BY_ID}{_LOG}",
        read=read_removed,
        needs_log_device=True,
        waived=UNLABELLED,
        start=(uberblocks(most=8), SOON),
        amid=(uberblocks(least=4, most=24), blocks(disk="data0", least=20, most=300)),
    ),
)
