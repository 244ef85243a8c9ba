"""`zpool replace` of a disk by another one.

zpool-replace(8). Durable by return, as `attach` is: `spa_vdev_attach` with `replacing`. The old
disk leaves when the new one has all its data (OpenZFS `module/zfs/spa.c`, `spa_vdev_copying_done`).
"""

from __future__ import annotations

from torture.choices.administration._copying import COPIED, UNLABELLED
from torture.choices.administration._datasets import ballast_script
from torture.choices.administration.attach import ATTACH
from torture.choices.administration.protocol import (
    BY_ID,
    SPARE,
    Administration,
    Outcome,
    Printed,
    children_of,
    devices_in,
)
from torture.choices.volumes import POOL
from torture.facts.axes.layout import Layout
from torture.facts.axes.sweeps import Sweep

_OLD = "data0"


def read(printed: Printed) -> Outcome:
    """Judge by the vdev that holds both disks as long as the replacement goes on."""
    for _, vdev in devices_in(printed.tops()):
        if vdev.get("vdev_type") == "replacing":
            both = list(children_of(vdev))
            is_whole = all(any(name.endswith(disk) for name in both) for disk in (_OLD, SPARE))
            return Outcome.GOING_ON if is_whole else Outcome.HALF
    has_old, has_new = printed.has_disk(_OLD), printed.has_disk(SPARE)
    if has_old is has_new:
        return Outcome.HALF
    return Outcome.DONE if has_new else Outcome.UNDONE


ADMINISTRATION = Administration(
    name="replace",
    words="a disk is replaced",
    explained="`zpool replace`",
    sweep=Sweep.ADMINISTRATION_OF_MIRRORS,
    script=f"zpool replace {POOL} {BY_ID}{_OLD} {BY_ID}{SPARE}",
    read=read,
    activity="replace",
    prepare=ballast_script(mib=32),
    spares=1,
    layouts=frozenset({Layout.SINGLE, Layout.MIRRORED, Layout.RAIDZ1, Layout.RAIDZ2}),
    waived=COPIED | UNLABELLED,
    moves_blocks=True,
    start=ATTACH.start,
    amid=ATTACH.amid,
)
