"""`zpool add log`: a log device joins a pool that had none, under synchronous writes.

zpool-add(8). Durable by return: `spa_vdev_add` ends in `spa_vdev_exit`, which waits until its group
is synced (OpenZFS `module/zfs/spa.c`). From then on ZFS writes the intent log there. So after a cut
it replays the log from a device that has only just joined.
"""

from __future__ import annotations

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


def read(printed: Printed) -> Outcome:
    """Judge by the pool's log devices."""
    is_log = any(name.endswith(SPARE) for name in printed.tops("logs"))
    if is_log:
        return Outcome.DONE
    return Outcome.HALF if printed.has_disk(SPARE) else Outcome.UNDONE


ADMINISTRATION = Administration(
    name="log_add",
    words="a log device is added",
    explained="`zpool add log`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool add -f {POOL} log {BY_ID}{SPARE}",
    read=read,
    spares=1,
    needs_log_device=False,
    start=(uberblocks(most=8), SOON),
    amid=(blocks(disk=SPARE, most=30),),
)
