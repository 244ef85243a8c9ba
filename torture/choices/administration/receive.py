"""`zfs send | zfs receive` within the pool: the copy is whole and has its snapshot, or is absent.

zfs-receive(8). Durable by return: the snapshot is made last, and `dmu_recv_end` waits for its group
in `dsl_sync_task` (OpenZFS `module/zfs/dmu_recv.c`). The next import destroys a partial copy
(`module/zfs/spa.c`, `dsl_destroy_inconsistent`). Sending changes nothing.
"""

from __future__ import annotations

from torture.choices.administration._datasets import BALLAST, OTHER, ballast_script, list_command
from torture.choices.administration.protocol import (
    SOON,
    Administration,
    Outcome,
    Printed,
    blocks,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError

_SAME, _NONE, _OTHERWISE = "same", "none", "otherwise"
_COMPARE = (
    f"if mountpoint -q /{OTHER}; "
    f"then cmp -s /{BALLAST}/ballast /{OTHER}/ballast && echo {_SAME} || echo {_OTHERWISE}; "
    f"else echo {_NONE}; fi"
)


def read(printed: Printed) -> Outcome:
    """Judge by the copy, its snapshot, and whether its file equals the sent one."""
    names = printed.properties()
    has_copy, has_snapshot = OTHER in names, f"{OTHER}@before" in names
    compared = printed.text("sh").strip()
    if compared not in (_SAME, _NONE, _OTHERWISE):
        raise UnreadableError(f"the copy was not compared: {compared!r}")
    if not has_copy and not has_snapshot:
        return Outcome.UNDONE if compared == _NONE else Outcome.HALF
    is_whole = has_copy and has_snapshot and compared == _SAME
    return Outcome.DONE if is_whole else Outcome.HALF


ADMINISTRATION = Administration(
    name="receive",
    words="a dataset is sent and received",
    explained="`zfs send` and `zfs receive`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs send {BALLAST}@before | zfs receive {OTHER}",
    read=read,
    questions=(list_command("used"), ("sh", "-c", _COMPARE)),
    prepare=f"{ballast_script(mib=32)}; zfs snapshot {BALLAST}@before; zpool sync {POOL}",
    start=(SOON, uberblocks(most=4)),
    amid=(blocks(disk="data0", least=20, most=400), uberblocks(least=3, most=16)),
)
