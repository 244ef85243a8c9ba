"""`zpool attach` of a disk to a raidz: the vdev is expanded, and all its blocks are rewritten.

zpool-attach(8). The command returns once `spa_vdev_attach` (OpenZFS `module/zfs/spa.c`) has come
out of `spa_vdev_exit`. That waits until the transaction group with the new configuration is synced.
From then on a separate thread moves the blocks (`module/zfs/vdev_raidz.c`, `raidz_reflow_sync`).

Up to 2.3.9 and 2.4.4 one group writes the new child to the configuration. A later group writes that
the vdev is being expanded, after a wait for `TXG_CONCURRENT_STATES` + `TXG_DEFER_SIZE` groups (12
were seen). A cut in between leaves a vdev of a geometry in which none of its data was ever written.
Since "Fix race condition in raidz expansion startup" (7026d33350e4, August 2026) both go into one
group.

The moved data are no part of the group under way: a later group's uberblock records the move
(`vdev_raidz.c`, `raidz_reflow_sync`). So the audit cannot require that an uberblock finds all
writes covered.
"""

from __future__ import annotations

from typing import Any

from torture.choices.administration._copying import COPIED
from torture.choices.administration._datasets import ballast_script
from torture.choices.administration.protocol import (
    BY_ID,
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
from torture.oracles.verdict.unreadable import UnreadableError

_GOES_ON, _HAS_ENDED = "SCANNING", "FINISHED"


def read(printed: Printed) -> Outcome:
    """Judge by the disks of the raidz, and by its expansion in `zpool status`."""
    pool = printed.pool()
    tops = printed.tops()
    if len(tops) != 1:
        raise UnreadableError(f"zpool status -j: {len(tops)} vdevs where one raidz was made")
    (raidz,) = tops.values()
    state = _state_of(pool)
    is_wider = any(name.endswith(SPARE) for name in children_of(raidz))
    if not is_wider:
        return Outcome.UNDONE if state is None else Outcome.HALF
    if state == _HAS_ENDED:
        return Outcome.DONE
    return Outcome.GOING_ON if state == _GOES_ON else Outcome.HALF


def _state_of(pool: dict[str, Any]) -> str | None:
    stats = pool.get("raidz_expand_stats")
    if stats is None:
        return None
    state = stats.get("state") if isinstance(stats, dict) else None
    if not isinstance(state, str):
        raise UnreadableError("zpool status -j: an expansion without a state")
    return state


ADMINISTRATION = Administration(
    name="expand",
    words="a raidz is expanded",
    explained="`zpool attach` to a raidz",
    sweep=Sweep.ADMINISTRATION_OF_RAIDZ,
    script=f"zpool attach {POOL} raidz1-0 {BY_ID}{SPARE}",
    read=read,
    activity="raidz_expand",
    prepare=ballast_script(mib=24),
    spares=1,
    layouts=frozenset({Layout.RAIDZ1}),
    waived=COPIED,
    moves_blocks=True,
    start=(uberblocks(most=64),),
    amid=(blocks(disk=SPARE, least=16, most=110),),
)
