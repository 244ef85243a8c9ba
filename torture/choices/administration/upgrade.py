"""`zpool upgrade`: all features of this version are enabled in a pool of an older one.

zpool-upgrade(8), zpool-features(7). A separate call enables each feature and waits for its group
(OpenZFS `cmd/zpool/zpool_main.c`, `upgrade_enable_all`; `module/zfs/spa.c`, `spa_prop_set`). So a
cut may leave some features enabled and others not, and repeating the command enables the rest. Once
it has returned all are enabled.
"""

from __future__ import annotations

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

_OF_OLD = "edonr"
_OF_NEW = (
    "blake3",
    "block_cloning",
    "vdev_zaps_v2",
    "head_errlog",
    "zilsaxattr",
    "raidz_expansion",
)
"""Features of 2.2 and later (zpool-features(7)): disabled before, and enabled by the command."""


def read(printed: Printed) -> Outcome:
    """Judge by the features that came after the pool's version."""
    properties = printed.pool_properties()
    try:
        states = [properties[f"feature@{name}"] for name in (_OF_OLD, *_OF_NEW)]
    except KeyError as error:
        raise UnreadableError(f"zpool get -j: no {error}") from error
    old, *new = states
    if old == "disabled":
        return Outcome.HALF
    disabled = new.count("disabled")
    if not disabled:
        return Outcome.DONE
    return Outcome.UNDONE if disabled == len(new) else Outcome.IN_PART


ADMINISTRATION = Administration(
    name="upgrade",
    words="the pool is upgraded",
    explained="`zpool upgrade` from 2.1's features",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool set compatibility=off {POOL}; zpool upgrade {POOL}",
    read=read,
    questions=(("zpool", "get", "-j", "all", POOL),),
    pool_options="-o compatibility=openzfs-2.1-linux",
    start=(SOON, uberblocks(most=4)),
    amid=(uberblocks(least=20, most=64),),
)
