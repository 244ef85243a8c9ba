"""`zpool scrub`: everything is read and verified while the client continues to write.

zpool-scrub(8). Durable by return: `dsl_scan` waits for its group in `dsl_sync_task` (OpenZFS
`module/zfs/dsl_scan.c`). ZFS records the scrub's progress from time to time, and an import
continues there.

A pool remembers one scan. An import that finds a disk with missing writes starts a resilver in
place of a scrub (`spa_load_impl` in `module/zfs/spa.c`, `dsl_scan_restart_resilver`). From then on
`zpool status` does not report the scrub.
"""

from __future__ import annotations

from torture.choices.administration._datasets import ballast_script
from torture.choices.administration.protocol import (
    SOON,
    Administration,
    CutPoint,
    Outcome,
    Printed,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError


def read(printed: Printed) -> Outcome:
    """Judge by the last scan in `zpool status`."""
    scan = printed.pool().get("scan_stats")
    if scan is None:
        return Outcome.UNDONE
    if not isinstance(scan, dict) or not isinstance(scan.get("state"), str):
        raise UnreadableError("zpool status -j: a scan without a state")
    if scan.get("function") == "RESILVER":
        raise UnreadableError("zpool status -j: a resilver in the place of a scrub")
    if scan.get("function") != "SCRUB":
        return Outcome.UNDONE
    states = {"SCANNING": Outcome.GOING_ON, "FINISHED": Outcome.DONE, "NONE": Outcome.UNDONE}
    return states.get(scan["state"], Outcome.HALF)


ADMINISTRATION = Administration(
    name="scrub",
    words="the pool is scrubbed",
    explained="`zpool scrub`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool scrub {POOL}",
    read=read,
    activity="scrub",
    prepare=ballast_script(mib=64),
    start=(SOON, uberblocks(most=4)),
    amid=(uberblocks(least=4, most=12), CutPoint(delay_ms_max=2500)),
)
