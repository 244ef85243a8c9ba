"""`zpool attach -s`: the new disk is filled from beginning to end, and a scrub follows.

zpool-attach(8). As `attach`, but the copying knows no blocks (OpenZFS `module/zfs/vdev_rebuild.c`).
ZFS then starts a scrub, which verifies the checksums.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.administration.attach import ATTACH
from torture.choices.administration.protocol import BY_ID, SPARE, Administration
from torture.choices.volumes import POOL
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep

CHOICE: Choice[Administration | None] = Choice(
    name="attach_sequential",
    words="a disk is attached to a mirror, sequentially",
    explained="`zpool attach -s`",
    joins=frozenset({Sweep.ADMINISTRATION}),
    value=replace(
        ATTACH,
        script=f"zpool attach -s {POOL} {BY_ID}data0 {BY_ID}{SPARE}",
        activity="resilver,scrub",
    ),
)
