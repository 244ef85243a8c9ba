"""`zfs destroy` of a dataset with data: it is gone at once, and its blocks are freed later.

zfs-destroy(8), zpool-features(7), async_destroy. Durable by return: `dsl_destroy_head` waits for
its group in `dsl_sync_task` (OpenZFS `module/zfs/dsl_destroy.c`). The freeing continues after an
import (`module/zfs/dsl_scan.c`, `dsl_process_async_destroys`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import BALLAST, ballast_script, list_command
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


def read(printed: Printed) -> Outcome:
    """Judge by the dataset, and by the bytes that the pool has still to free."""
    try:
        freeing = int(printed.pool_properties()["freeing"])
    except (KeyError, ValueError) as error:
        raise UnreadableError(f"zpool get -j: no count of freed bytes: {error!r}") from error
    if BALLAST in printed.properties():
        return Outcome.UNDONE
    return Outcome.GOING_ON if freeing else Outcome.DONE


ADMINISTRATION = Administration(
    name="destroy",
    words="a dataset is destroyed",
    explained="`zfs destroy`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs destroy {BALLAST}",
    read=read,
    questions=(list_command("used"), ("zpool", "get", "-j", "-p", "freeing", POOL)),
    activity="free",
    prepare=ballast_script(mib=24, options="-o recordsize=4k"),
    start=(SOON, uberblocks(most=4)),
    amid=(uberblocks(least=3, most=16),),
)
