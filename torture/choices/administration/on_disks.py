"""Operations on the disks of the pool: they join it, leave it, or come back to it."""

from __future__ import annotations

from dataclasses import replace

from torture.choices.administration.protocol import (
    BY_ID,
    COPIED,
    SOON,
    SPARE,
    Administration,
    CutPoint,
    Outcome,
    Printed,
    ballast_script,
    blocks,
    children_of,
    devices_in,
    has_resilvered,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.pool_disks import Layout
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.guarantee import UnreadableError


# `zpool attach` of a disk to a disk or a mirror, resilvered block by block or sequentially.
#
# zpool-attach(8). Durable by return: `spa_vdev_attach` ends in `spa_vdev_exit`, which waits
# until the group with the new configuration is synced (OpenZFS `module/zfs/spa.c`,
# `spa_vdev_config_exit`). That configuration records what the new disk lacks, and a resilver
# continues after an import.
def read_attached(printed: Printed) -> Outcome:
    """Judge by the mirror that must hold the new disk beside the old one."""
    for name, top in printed.tops().items():
        disks = [child for child in children_of(top) if child.endswith(SPARE)]
        if not disks and not name.endswith(SPARE):
            continue
        if top.get("vdev_type") != "mirror" or len(children_of(top)) < 2:
            return Outcome.HALF
        return Outcome.DONE if has_resilvered(printed.pool()) else Outcome.GOING_ON
    return Outcome.UNDONE


_ATTACH = Administration(
    name="attach",
    words="a disk is attached to a mirror",
    explained="`zpool attach` to a disk or a mirror",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool attach {POOL} {BY_ID}data0 {BY_ID}{SPARE}",
    read=read_attached,
    activity="resilver",
    prepare=ballast_script(mib=32),
    spares=1,
    layouts=frozenset({Layout.SINGLE, Layout.MIRRORED}),
    waived=COPIED,
    start=(uberblocks(most=12), SOON),
    amid=(blocks(disk=SPARE, least=20, most=150),),
    is_walked=True,
)

# `zpool attach -s`: the new disk is filled from beginning to end. This copying knows no blocks (OpenZFS
# `module/zfs/vdev_rebuild.c`). ZFS then starts a scrub, which verifies the checksums.
_ATTACH_SEQUENTIAL = replace(
    _ATTACH,
    name="attach_sequential",
    words="a disk is attached to a mirror, sequentially",
    explained="`zpool attach -s`",
    script=f"zpool attach -s {POOL} {BY_ID}data0 {BY_ID}{SPARE}",
    activity="resilver,scrub",
    is_walked=True,
)


# `zpool attach` of a disk to a raidz: the vdev is expanded, and all its blocks are rewritten.
#
# zpool-attach(8). The command returns once `spa_vdev_attach` (OpenZFS `module/zfs/spa.c`) has
# come out of `spa_vdev_exit`. That waits until the transaction group with the new configuration
# is synced. From then on a separate thread moves the blocks (`module/zfs/vdev_raidz.c`,
# `raidz_reflow_sync`).
#
# Up to 2.3.9 and 2.4.4 one group writes the new child to the configuration. A later group writes
# that the vdev is being expanded, after a wait for `TXG_CONCURRENT_STATES` + `TXG_DEFER_SIZE`
# groups (12 were seen). A cut in between leaves a vdev of a geometry in which none of its data
# was ever written. Since "Fix race condition in raidz expansion startup" (7026d33350e4, August
# 2026) both go into one group.
#
# The moved data are no part of the group under way: a later group's uberblock records the move
# (`vdev_raidz.c`, `raidz_reflow_sync`). So the audit cannot require that an uberblock finds all
# writes covered.

_GOES_ON, _HAS_ENDED = "SCANNING", "FINISHED"


def read_expanded(printed: Printed) -> Outcome:
    """Judge by the disks of the raidz, and by its expansion in `zpool status`."""
    tops = printed.tops()
    if len(tops) != 1:
        raise UnreadableError(f"zpool status -j: {len(tops)} vdevs where one raidz was made")
    (raidz,) = tops.values()
    state = printed.state_of("raidz_expand_stats")
    is_wider = any(name.endswith(SPARE) for name in children_of(raidz))
    if not is_wider:
        return Outcome.UNDONE if state is None else Outcome.HALF
    if state == _HAS_ENDED:
        return Outcome.DONE
    return Outcome.GOING_ON if state == _GOES_ON else Outcome.HALF


_EXPAND = Administration(
    name="expand",
    words="a raidz is expanded",
    explained="`zpool attach` to a raidz",
    sweep=Sweep.ADMINISTRATION_OF_RAIDZ,
    script=f"zpool attach {POOL} raidz1-0 {BY_ID}{SPARE}",
    read=read_expanded,
    activity="raidz_expand",
    prepare=ballast_script(mib=24),
    spares=1,
    layouts=frozenset({Layout.RAIDZ1}),
    waived=COPIED,
    moves_blocks=True,
    start=(uberblocks(most=64),),
    amid=(blocks(disk=SPARE, least=16, most=110),),
    is_walked=True,
)


# `zpool add log` and `zpool remove` of a log device, under synchronous writes.
#
# zpool-add(8). Durable by return: `spa_vdev_add` ends in `spa_vdev_exit`, which waits until its
# group is synced (OpenZFS `module/zfs/spa.c`). From then on ZFS writes the intent log there. So
# after a cut it replays the log from a device that has only just joined a pool that had none.
#
# zpool-remove(8). Durable by return: `spa_vdev_remove_log` empties it and waits for its groups,
# and `spa_vdev_exit` for the one with the new configuration (OpenZFS
# `module/zfs/vdev_removal.c`).

_LOG = "slog0"


def read_log_added(printed: Printed) -> Outcome:
    """Judge by the pool's log devices."""
    is_log = any(name.endswith(SPARE) for name in printed.tops("logs"))
    if is_log:
        return Outcome.DONE
    return Outcome.HALF if printed.has_disk(SPARE) else Outcome.UNDONE


def read_log_removed(printed: Printed) -> Outcome:
    """Judge by the pool's log devices."""
    if any(_LOG in name for name in printed.tops("logs")):
        return Outcome.UNDONE
    return Outcome.HALF if printed.has_disk(_LOG) else Outcome.DONE


_LOGS = (
    Administration(
        name="log_add",
        words="a log device is added",
        explained="`zpool add log`",
        sweep=Sweep.ADMINISTRATION,
        script=f"zpool add -f {POOL} log {BY_ID}{SPARE}",
        read=read_log_added,
        spares=1,
        needs_log_device=False,
        start=(uberblocks(most=8), SOON),
        amid=(blocks(disk=SPARE, most=30),),
    ),
    Administration(
        name="log_remove",
        words="a log device is removed",
        explained="`zpool remove` of a log device",
        sweep=Sweep.ADMINISTRATION_OF_LOGS,
        script=f"zpool remove {POOL} {BY_ID}{_LOG}",
        read=read_log_removed,
        needs_log_device=True,
        start=(uberblocks(most=8), SOON),
        amid=(uberblocks(least=4, most=24), blocks(disk="data0", least=20, most=300)),
    ),
)


# `zpool remove` of a top-level vdev: all its data are copied to the other one.
#
# zpool-remove(8). Durable by return: the start of the removal goes into the group that
# `spa_vdev_exit` waits for (OpenZFS `module/zfs/vdev_removal.c`, `spa_vdev_remove_top`). The
# copying continues after the return, and after an import.
def read_removed(printed: Printed) -> Outcome:
    """Judge by the vdev, and by its removal in `zpool status`."""
    state = printed.state_of("removal_stats")
    is_there = any(name.endswith(SPARE) for name in printed.tops())
    if is_there and state == "SCANNING":
        return Outcome.GOING_ON
    if is_there:
        return Outcome.UNDONE if state in (None, "NONE") else Outcome.HALF
    return Outcome.DONE if state == "FINISHED" else Outcome.HALF


_REMOVE = Administration(
    name="remove",
    words="a vdev is removed",
    explained="`zpool remove` of one of two disks",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool remove {POOL} {BY_ID}{SPARE}",
    read=read_removed,
    activity="remove",
    prepare=(f"set -eu; zpool add -f {POOL} {BY_ID}{SPARE}; {ballast_script(mib=64)}"),
    spares=1,
    layouts=frozenset({Layout.SINGLE}),
    moves_blocks=True,
    start=(uberblocks(most=12), SOON),
    amid=(blocks(disk="data0", least=40, most=400),),
    is_walked=True,
)


# The time after such a removal. Each transaction group gives the pointers in the metadata that it
# writes the new addresses of their blocks (OpenZFS `module/zfs/dbuf.c`, `dbuf_remap`). The first
# groups are due within `zfs_txg_timeout`, 5 s.
_AFTER_REMOVAL = (CutPoint(delay_ms_max=15_000, is_after_end=True),)
_REMOVED = replace(
    _REMOVE,
    name="removed",
    words="a vdev was removed",
    explained="some seconds after the end of `remove`",
    sweep=None,
    start=_AFTER_REMOVAL,
    amid=_AFTER_REMOVAL,
    end=_AFTER_REMOVAL,
    is_walked=False,
)


# `zpool replace` of a disk by another one.
#
# zpool-replace(8). Durable by return, as `attach` is: `spa_vdev_attach` with `replacing`. The
# old disk leaves when the new one has all its data (OpenZFS `module/zfs/spa.c`,
# `spa_vdev_copying_done`).

_OLD = "data0"


def read_replaced(printed: Printed) -> Outcome:
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


_REPLACE = Administration(
    name="replace",
    words="a disk is replaced",
    explained="`zpool replace`",
    sweep=Sweep.ADMINISTRATION_OF_MIRRORS,
    script=f"zpool replace {POOL} {BY_ID}{_OLD} {BY_ID}{SPARE}",
    read=read_replaced,
    activity="replace",
    prepare=ballast_script(mib=32),
    spares=1,
    layouts=frozenset({Layout.SINGLE, Layout.MIRRORED, Layout.RAIDZ1, Layout.RAIDZ2}),
    waived=COPIED,
    moves_blocks=True,
    start=_ATTACH.start,
    amid=_ATTACH.amid,
    is_walked=True,
)


# A leg of the mirror that was away comes back; its missing writes are resilvered.
#
# zpool-online(8). It was offline until the next import at the latest (`zpool offline -t`), like
# a disk with a pulled cable. So a NAS after a reboot finds it, too, and resilvers it by itself.
# Durable by return: `vdev_online` ends in `spa_vdev_state_exit`, which waits for its group
# (OpenZFS `module/zfs/spa_misc.c`).
#
# An import after a cut starts to read before it knows the leg's missing writes. It counts its
# reads there as errors of the leg (seen: 2 of them). They are cleared once the resilver is done,
# as an administrator would do. Errors that the scrub finds after that count.

_LEG = "data1"


def read_resilvered(printed: Printed) -> Outcome:
    """Judge by the state of the leg, and whether it has been resilvered since."""
    legs = [vdev for name, vdev in devices_in(printed.tops()) if name.endswith(_LEG)]
    states = [str(leg.get("state")) for leg in legs]
    if states == ["OFFLINE"]:
        return Outcome.UNDONE
    if states != ["ONLINE"]:
        return Outcome.HALF
    return Outcome.DONE if has_resilvered(printed.pool()) else Outcome.GOING_ON


_RESILVER = Administration(
    name="resilver",
    words="a mirror's leg comes back",
    explained="`zpool online` of a mirror's leg that was away, which is resilvered",
    sweep=Sweep.ADMINISTRATION_OF_MIRRORS,
    script=f"zpool online {POOL} {BY_ID}{_LEG}",
    read=read_resilvered,
    activity="resilver",
    at_end=("zpool", "clear", POOL),
    prepare=f"set -e; zpool offline -t {POOL} {BY_ID}{_LEG}; {ballast_script(mib=32)}",
    layouts=frozenset({Layout.MIRRORED}),
    waived=COPIED,
    moves_blocks=True,
    start=(uberblocks(most=12), SOON),
    amid=(blocks(disk=_LEG, least=20, most=150),),
    is_walked=True,
)

ADMINISTRATIONS = (
    _ATTACH,
    _ATTACH_SEQUENTIAL,
    _EXPAND,
    *_LOGS,
    _REMOVE,
    _REMOVED,
    _REPLACE,
    _RESILVER,
)
