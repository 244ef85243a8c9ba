"""`zpool attach` of a disk to a disk or a mirror, resilvered block by block or sequentially.

zpool-attach(8). Durable by return: `spa_vdev_attach` ends in `spa_vdev_exit`, which waits until the
group with the new configuration is synced (OpenZFS `module/zfs/spa.c`, `spa_vdev_config_exit`).
That configuration records what the new disk lacks, and a resilver continues after an import.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.administration._copying import COPIED, has_resilvered
from torture.choices.administration._datasets import ballast_script
from torture.choices.administration.protocol import (
    BY_ID,
    SOON,
    SPARE,
    Administration,
    Outcome,
    Printed,
    blocks,
    children_of,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.layout import Layout
from torture.facts.axes.sweeps import Sweep


def read(printed: Printed) -> Outcome:
    """Judge by the mirror that must hold the new disk beside the old one."""
    for name, top in printed.tops().items():
        disks = [child for child in children_of(top) if child.endswith(SPARE)]
        if not disks and not name.endswith(SPARE):
            continue
        if top.get("vdev_type") != "mirror" or len(children_of(top)) < 2:
            return Outcome.HALF
        return Outcome.DONE if has_resilvered(printed.pool()) else Outcome.GOING_ON
    return Outcome.UNDONE


ATTACH = Administration(
    name="attach",
    words="a disk is attached to a mirror",
    explained="`zpool attach` to a disk or a mirror",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool attach {POOL} {BY_ID}data0 {BY_ID}{SPARE}",
    read=read,
    activity="resilver",
    prepare=ballast_script(mib=32),
    spares=1,
    layouts=frozenset({Layout.SINGLE, Layout.MIRRORED}),
    waived=COPIED,
    start=(uberblocks(most=12), SOON),
    amid=(blocks(disk=SPARE, least=20, most=150),),
)

# `zpool attach -s`: the new disk is filled from beginning to end. This copying knows no blocks (OpenZFS
# `module/zfs/vdev_rebuild.c`). ZFS then starts a scrub, which verifies the checksums.
_SEQUENTIAL = replace(
    ATTACH,
    name="attach_sequential",
    words="a disk is attached to a mirror, sequentially",
    explained="`zpool attach -s`",
    script=f"zpool attach -s {POOL} {BY_ID}data0 {BY_ID}{SPARE}",
    activity="resilver,scrub",
)

ADMINISTRATIONS = (ATTACH, _SEQUENTIAL)
