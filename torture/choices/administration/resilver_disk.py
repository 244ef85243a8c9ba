"""A leg of the mirror that was away comes back; its missing writes are resilvered.

zpool-online(8). It was offline until the next import at the latest (`zpool offline -t`), like a
disk with a pulled cable. So a NAS after a reboot finds it, too, and resilvers it by itself. Durable
by return: `vdev_online` ends in `spa_vdev_state_exit`, which waits for its group (OpenZFS
`module/zfs/spa_misc.c`).

An import after a cut starts to read before it knows the leg's missing writes. It counts its reads
there as errors of the leg (seen: 2 of them). They are cleared once the resilver is done, as an
administrator would do. Errors that the scrub finds after that count.
"""

from __future__ import annotations

from torture.choices.administration._copying import COPIED, has_resilvered
from torture.choices.administration._datasets import ballast_script
from torture.choices.administration.protocol import (
    BY_ID,
    SOON,
    Administration,
    Outcome,
    Printed,
    blocks,
    devices_in,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.layout import Layout
from torture.facts.axes.sweeps import Sweep

_LEG = "data1"


def read(printed: Printed) -> Outcome:
    """Judge by the state of the leg, and whether it has been resilvered since."""
    legs = [vdev for name, vdev in devices_in(printed.tops()) if name.endswith(_LEG)]
    states = [str(leg.get("state")) for leg in legs]
    if states == ["OFFLINE"]:
        return Outcome.UNDONE
    if states != ["ONLINE"]:
        return Outcome.HALF
    return Outcome.DONE if has_resilvered(printed.pool()) else Outcome.GOING_ON


ADMINISTRATION = Administration(
    name="resilver",
    words="a mirror's leg comes back",
    explained="`zpool online` of a mirror's leg that was away, which is resilvered",
    sweep=Sweep.ADMINISTRATION_OF_MIRRORS,
    script=f"zpool online {POOL} {BY_ID}{_LEG}",
    read=read,
    activity="resilver",
    at_end=("zpool", "clear", POOL),
    prepare=f"set -e; zpool offline -t {POOL} {BY_ID}{_LEG}; {ballast_script(mib=32)}",
    layouts=frozenset({Layout.MIRRORED}),
    waived=COPIED,
    moves_blocks=True,
    start=(uberblocks(most=12), SOON),
    amid=(blocks(disk=_LEG, least=20, most=150),),
)
