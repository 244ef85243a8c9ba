"""`zpool trim`: ZFS informs the disks of all free space.

zpool-trim(8). Durable by return: `spa_vdev_trim` waits for the group that records which disks are
trimmed (OpenZFS `module/zfs/spa.c`). The trimming continues after the return, and after an import
(`module/zfs/vdev_trim.c`, `vdev_trim_restart`).
"""

from __future__ import annotations

from torture.choices.administration.protocol import (
    SOON,
    Administration,
    CutPoint,
    Outcome,
    Printed,
    devices_in,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep
from torture.facts.recording.events import Kind
from torture.oracles.verdict.unreadable import UnreadableError

_UNTRIMMED = frozenset({"NONE", "UNTRIMMED"})


def read(printed: Printed) -> Outcome:
    """Judge by the state of each disk in `zpool status -t`."""
    states = {
        str(vdev.get("trim_state"))
        for _, vdev in devices_in(printed.tops())
        if vdev.get("vdev_type") == "disk"
    }
    if not states or "None" in states:
        raise UnreadableError("zpool status -j -t: disks without the state of their trim")
    if states <= _UNTRIMMED:
        return Outcome.UNDONE
    if states == {"COMPLETE"}:
        return Outcome.DONE
    return Outcome.GOING_ON if states <= {"ACTIVE", "COMPLETE"} else Outcome.HALF


ADMINISTRATION = Administration(
    name="trim",
    words="the pool is trimmed",
    explained="`zpool trim`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool trim {POOL}",
    read=read,
    questions=(("zpool", "status", "-j", "-t", POOL),),
    activity="trim",
    start=(SOON, uberblocks(most=4)),
    amid=(
        CutPoint(event=Kind.TRIM_SUBMIT, most=8),
        CutPoint(event=Kind.TRIM_COMPLETE, most=8),
    ),
)
