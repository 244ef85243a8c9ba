"""Operations on datasets, snapshots and volumes of the pool: zfs(8)."""

from __future__ import annotations

from torture.choices.administration.protocol import (
    BALLAST,
    OTHER,
    SOON,
    Administration,
    Outcome,
    Printed,
    ballast_script,
    blocks,
    list_command,
    uberblocks,
)
from torture.choices.volumes import POOL, VOLUME
from torture.facts.axes.sweeps import Sweep
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import UnreadableError

# `zfs clone` of a snapshot of the client's volume.
#
# zfs-clone(8). Durable by return: `dsl_dataset_clone` waits for its group in `dsl_sync_task`
# (OpenZFS `module/zfs/dmu_objset.c`).

_CLONED = f"{VOLUME}@before"


def read_clone(printed: Printed) -> Outcome:
    """Judge by the clone and its stated origin."""
    clone = printed.properties().get(OTHER)
    if clone is None:
        return Outcome.UNDONE
    return Outcome.DONE if clone.get("origin") == _CLONED else Outcome.HALF


_CLONE = Administration(
    name="clone",
    words="a volume is cloned",
    explained="`zfs clone`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs clone {_CLONED} {OTHER}",
    read=read_clone,
    questions=(list_command("origin"),),
    prepare=f"zfs snapshot {_CLONED}",
)


# `zfs destroy` of a dataset with data: it is gone at once, and its blocks are freed later.
#
# zfs-destroy(8), zpool-features(7), async_destroy. Durable by return: `dsl_destroy_head` waits
# for its group in `dsl_sync_task` (OpenZFS `module/zfs/dsl_destroy.c`). The freeing continues
# after an import (`module/zfs/dsl_scan.c`, `dsl_process_async_destroys`).
def read_destroyed(printed: Printed) -> Outcome:
    """Judge by the dataset, and by the bytes that the pool has still to free."""
    try:
        freeing = int(printed.pool_properties()["freeing"])
    except (KeyError, ValueError) as error:
        raise UnreadableError(f"zpool get -j: no count of freed bytes: {error!r}") from error
    if BALLAST in printed.properties():
        return Outcome.UNDONE
    return Outcome.GOING_ON if freeing else Outcome.DONE


_DESTROY = Administration(
    name="destroy",
    words="a dataset is destroyed",
    explained="`zfs destroy`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs destroy {BALLAST}",
    read=read_destroyed,
    questions=(list_command("used"), ("zpool", "get", "-j", "-p", "freeing", POOL)),
    activity="free",
    prepare=ballast_script(mib=24, options="-o recordsize=4k"),
    start=(SOON, uberblocks(most=4)),
    amid=(uberblocks(least=3, most=16),),
)


# `zfs send | zfs receive` within the pool: the copy is whole and has its snapshot, or is absent.
#
# zfs-receive(8). Durable by return: the snapshot is made last, and `dmu_recv_end` waits for its
# group in `dsl_sync_task` (OpenZFS `module/zfs/dmu_recv.c`). The next import destroys a partial
# copy (`module/zfs/spa.c`, `dsl_destroy_inconsistent`). Sending changes nothing.

_SAME, _NONE, _OTHERWISE = "same", "none", "otherwise"
_COMPARE = (
    f"if mountpoint -q /{OTHER}; "
    f"then cmp -s /{BALLAST}/ballast /{OTHER}/ballast && echo {_SAME} || echo {_OTHERWISE}; "
    f"else echo {_NONE}; fi"
)


def read_received(printed: Printed) -> Outcome:
    """Judge by the copy, its snapshot, and whether its file equals the sent one."""
    names = printed.properties()
    has_copy, has_snapshot = OTHER in names, f"{OTHER}@before" in names
    compared = printed.text("sh").strip()
    if compared not in (_SAME, _NONE, _OTHERWISE):
        raise UnreadableError(f"the copy was not compared: {compared!r}")
    if not has_copy and not has_snapshot:
        return Outcome.UNDONE if compared == _NONE else Outcome.HALF
    is_whole = has_copy and has_snapshot and compared == _SAME
    return Outcome.DONE if is_whole else Outcome.HALF


_RECEIVE = Administration(
    name="receive",
    words="a dataset is sent and received",
    explained="`zfs send` and `zfs receive`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs send {BALLAST}@before | zfs receive {OTHER}",
    read=read_received,
    questions=(list_command("used"), ("sh", "-c", _COMPARE)),
    prepare=f"{ballast_script(mib=32)}; zfs snapshot {BALLAST}@before; zpool sync {POOL}",
    start=(SOON, uberblocks(most=4)),
    amid=(blocks(disk="data0", least=20, most=400), uberblocks(least=3, most=16)),
)


# `zfs rollback` of a dataset beside the client's volume: all its files are old, or all are new.
#
# zfs-rollback(8). Durable by return: `dsl_dataset_rollback` waits for its group in
# `dsl_sync_task` (OpenZFS `module/zfs/dsl_dataset.c`).

_FILES = 50
_END = "end"
_WRITE = f"for n in $(seq {_FILES}); do echo {{text}} > /{OTHER}/$n; done"


def read_rolled_back(printed: Printed) -> Outcome:
    """Judge by the content of its files."""
    *lines, last = printed.text("sh").split() or [""]
    if last != _END:
        raise UnreadableError(f"the files of {OTHER} were not read_rolled_back completely")
    if lines == ["new"] * _FILES:
        return Outcome.UNDONE
    return Outcome.DONE if lines == ["old"] * _FILES else Outcome.HALF


_ROLLBACK = Administration(
    name="rollback",
    words="a dataset is rolled back",
    explained="`zfs rollback`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs rollback {OTHER}@before",
    read=read_rolled_back,
    questions=(("sh", "-c", f"mountpoint -q /{OTHER} && cat /{OTHER}/* && echo {_END}"),),
    prepare=(
        f"set -eu; zfs create {OTHER}; {_WRITE.format(text='old')}; zfs snapshot {OTHER}@before; "
        f"{_WRITE.format(text='new')}; zpool sync {POOL}"
    ),
)


# `zfs set sync=always` on the client's volume, under its load.
#
# zfsprops(7). Durable by return: `dsl_props_set` waits for its group in `dsl_sync_task` (OpenZFS
# `module/zfs/dsl_prop.c`). From standard to always, so that the cell guarantees no less
# afterwards.
def read_sync(printed: Printed) -> Outcome:
    """Judge by the property."""
    sync = printed.properties().get(VOLUME, {}).get("sync")
    if sync is None:
        raise UnreadableError(f"zfs list -j: no sync of {VOLUME}")
    return {"always": Outcome.DONE, "standard": Outcome.UNDONE}.get(sync, Outcome.HALF)


_SET_SYNC = Administration(
    name="set_sync",
    words="sync is set",
    explained="`zfs set sync=always`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs set sync=always {VOLUME}",
    read=read_sync,
    questions=(list_command("sync"),),
    needs_sync=Sync.STANDARD,
)


# `zfs set volsize=` on a volume that reserves its space: size and reservation grow together.
#
# zfsprops(7), volsize: the reservation changes with it, "to prevent unexpected behavior".
# Durable by return: `zvol_update_volsize` waits for its group (OpenZFS `module/zfs/zvol.c`), and
# `dsl_dataset_set_refreservation` for its own in `dsl_sync_task`. ZFS uses two groups because
# both properties are special (`module/zfs/zfs_ioctl.c`, `zfs_set_prop_nvlist`). Repeating the
# command does not set the reservation, which is only changed where it fits the present size
# (`lib/libzfs/libzfs_dataset.c`, `zfs_add_synthetic_resv`).

_MIB = 1 << 20
_OLD_BYTES, _NEW_BYTES = 64 * _MIB, 128 * _MIB


def read_volsize(printed: Printed) -> Outcome:
    """Judge by both properties: a reservation is at least its volume's size, metadata on top."""
    volume = printed.properties().get(OTHER, {})
    try:
        size, reserved = int(volume["volsize"]), int(volume["refreservation"])
    except (KeyError, ValueError) as error:
        raise UnreadableError(f"zfs list -j: no volume with a reservation: {error!r}") from error
    if size == _NEW_BYTES and reserved >= _NEW_BYTES:
        return Outcome.DONE
    return (
        Outcome.UNDONE
        if size == _OLD_BYTES and _OLD_BYTES <= reserved < _NEW_BYTES
        else Outcome.HALF
    )


_SET_VOLSIZE = Administration(
    name="set_volsize",
    words="a volume grows",
    explained="`zfs set volsize=`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs set volsize={_NEW_BYTES} {OTHER}",
    read=read_volsize,
    questions=(list_command("volsize", "refreservation"),),
    prepare=f"zfs create -V {_OLD_BYTES} {OTHER}",
)


# `zfs snapshot -r` of the pool and the client's volume in it: all snapshots or none.
#
# zfs-snapshot(8): recursive ones "are taken atomically". Durable by return:
# `dsl_dataset_snapshot` waits for its group in `dsl_sync_task` (OpenZFS
# `module/zfs/dsl_dataset.c`, `dsl_synctask.c`).

_AMID = "@amid"


def read_snapshots(printed: Printed) -> Outcome:
    """Judge by the snapshots of all datasets."""
    names = printed.properties()
    datasets = [name for name in names if "@" not in name]
    made = [name for name in datasets if f"{name}{_AMID}" in names]
    if not made:
        return Outcome.UNDONE
    return Outcome.DONE if made == datasets else Outcome.HALF


_SNAPSHOT = Administration(
    name="snapshot",
    words="snapshots are made",
    explained="`zfs snapshot -r`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs snapshot -r {POOL}{_AMID}",
    read=read_snapshots,
    questions=(list_command("used"),),
    prepare=f"set -eu; for n in 1 2 3 4 5; do zfs create {POOL}/other$n; done",
)

ADMINISTRATIONS = (_CLONE, _DESTROY, _RECEIVE, _ROLLBACK, _SET_SYNC, _SET_VOLSIZE, _SNAPSHOT)
