"""`zpool attach -s`: the new disk is filled from beginning to end, and a scrub follows.

zpool-attach(8). As `attach`, but the copying knows no blocks (OpenZFS `module/zfs/vdev_rebuild.c`).
ZFS then starts a scrub, which verifies the checksums.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.administration.attach import ADMINISTRATION as ATTACH
from torture.choices.administration.protocol import BY_ID, SPARE
from torture.choices.volumes import POOL

ADMINISTRATION = replace(
    ATTACH,
    name="attach_sequential",
    words="a disk is attached to a mirror, sequentially",
    explained="`zpool attach -s`",
    script=f"zpool attach -s {POOL} {BY_ID}data0 {BY_ID}{SPARE}",
    activity="resilver,scrub",
)
