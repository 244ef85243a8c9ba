"""`zfs snapshot -r` of the pool and the client's volume in it: all snapshots or none.

zfs-snapshot(8): recursive ones "are taken atomically". Durable by return: `dsl_dataset_snapshot`
waits for its group in `dsl_sync_task` (OpenZFS `module/zfs/dsl_dataset.c`, `dsl_synctask.c`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import list_command
from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep

_NAME = "@amid"


def read(printed: Printed) -> Outcome:
    """Judge by the snapshots of all datasets."""
    names = printed.properties()
    datasets = [name for name in names if "@" not in name]
    made = [name for name in datasets if f"{name}{_NAME}" in names]
    if not made:
        return Outcome.UNDONE
    return Outcome.DONE if made == datasets else Outcome.HALF


ADMINISTRATION = Administration(
    name="snapshot",
    words="snapshots are made",
    explained="`zfs snapshot -r`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs snapshot -r {POOL}{_NAME}",
    read=read,
    questions=(list_command("used"),),
    prepare=f"set -eu; for n in 1 2 3 4 5; do zfs create {POOL}/other$n; done",
)
