"""`zfs clone` of a snapshot of the client's volume.

zfs-clone(8). Durable by return: `dsl_dataset_clone` waits for its group in `dsl_sync_task` (OpenZFS
`module/zfs/dmu_objset.c`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import OTHER, list_command
from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.volumes import VOLUME
from torture.facts.axes.sweeps import Sweep

_SNAPSHOT = f"{VOLUME}@before"


def read(printed: Printed) -> Outcome:
    """Judge by the clone and its stated origin."""
    clone = printed.properties().get(OTHER)
    if clone is None:
        return Outcome.UNDONE
    return Outcome.DONE if clone.get("origin") == _SNAPSHOT else Outcome.HALF


ADMINISTRATION = Administration(
    name="clone",
    words="a volume is cloned",
    explained="`zfs clone`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs clone {_SNAPSHOT} {OTHER}",
    read=read,
    questions=(list_command("origin"),),
    prepare=f"zfs snapshot {_SNAPSHOT}",
)
