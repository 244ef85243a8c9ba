"""Operations on the pool as a whole, and on all its blocks: zpool(8)."""

from __future__ import annotations

from torture.choices.administration.protocol import (
    BALLAST,
    OTHER,
    SOON,
    Administration,
    CutPoint,
    Outcome,
    Printed,
    ballast_script,
    devices_in,
    uberblocks,
)
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep
from torture.facts.recording.events import Kind
from torture.oracles.verdict.guarantee import UnreadableError

# `zpool checkpoint`: the pool's state is kept as it is. `-d`: blocks that only it kept are
# freed.
#
# zpool-checkpoint(8). Durable by return: `spa_checkpoint` waits for its group in
# `dsl_early_sync_task` (OpenZFS `module/zfs/spa_checkpoint.c`, `dsl_synctask.c`), and so does a
# discard. The freeing continues after the return, and after an import
# (`spa_checkpoint_discard_thread`).

_MADE = {"EXISTS": Outcome.DONE, "NONE": Outcome.UNDONE}
_DISCARDED = {"EXISTS": Outcome.UNDONE, "DISCARDING": Outcome.GOING_ON, "NONE": Outcome.DONE}


def _state_of(printed: Printed) -> str:
    """`EXISTS`, `DISCARDING`, or `NONE`; raises `UnreadableError`."""
    state = printed.state_of("checkpoint_stats") or "NONE"
    if state not in _DISCARDED:
        raise UnreadableError(f"zpool status -j: a checkpoint in the unknown state {state!r}")
    return state


_CHECKPOINTS = (
    Administration(
        name="checkpoint",
        words="a checkpoint is made",
        explained="`zpool checkpoint`",
        sweep=Sweep.ADMINISTRATION,
        script=f"zpool checkpoint {POOL}",
        read=lambda printed: _MADE.get(_state_of(printed), Outcome.HALF),
    ),
    Administration(
        name="checkpoint_discard",
        words="a checkpoint is discarded",
        explained="`zpool checkpoint -d`",
        sweep=Sweep.ADMINISTRATION,
        script=f"zpool checkpoint -d {POOL}",
        read=lambda printed: _DISCARDED[_state_of(printed)],
        activity="discard",
        prepare=(
            f"{ballast_script(mib=32)}; zpool checkpoint {POOL}; rm /{BALLAST}/ballast; "
            f"zpool sync {POOL}"
        ),
        start=(SOON, uberblocks(most=8)),
        amid=(uberblocks(least=4, most=24),),
    ),
)


# `zpool import --rewind-to-checkpoint`: a pool goes back to its checkpoint, all or nothing.
#
# The client's own pool cannot be rewound while the client has its disk. So the rewound pool lies
# on a file of a dataset beside it: its flushes are durable by that dataset's intent log.
#
# zpool-import(8). Durable by return: `spa_ld_checkpoint_rewind` writes the checkpoint's
# uberblock, as that of the next group, by `vdev_config_sync` (OpenZFS `module/zfs/spa.c`).
REWOUND = "rewound"
_DISK_MIB = 128
_FILES = 50
_CHECKPOINT, _NONE, _REFUSED, _END = "checkpoint", "-", "refused", "end"
_WRITE = f"for n in $(seq {_FILES}); do echo {{text}} > /{REWOUND}/$n; done"
_IMPORT = f"zpool import -f -o cachefile=none -d /{OTHER}"
_PREPARE = (
    f"set -eu; zfs create {OTHER}; truncate -s {_DISK_MIB}M /{OTHER}/disk; "
    f"zpool create -o cachefile=none {REWOUND} /{OTHER}/disk; "
    f"{_WRITE.format(text='old')}; zpool checkpoint {REWOUND}; "
    f"{_WRITE.format(text='new')}; zpool export {REWOUND}; zpool sync"
)
_LOOK = (
    f"mountpoint -q /{OTHER} || exit 1; "
    f"{_IMPORT} -o readonly=on {REWOUND} 2>&1 || {{ echo {_REFUSED}; exit 0; }}; "
    f"echo {_CHECKPOINT} $(zpool get -H -p -o value checkpoint {REWOUND}); "
    f"cat /{REWOUND}/*; zpool export {REWOUND} && echo {_END}"
)
"""Read-only, so that one look changes nothing for the next."""


def read_rewound(printed: Printed) -> Outcome:
    """Judge by the content of its files, and whether it still has a checkpoint."""
    words = printed.text("sh").split()
    if words[-1:] == [_REFUSED]:
        return Outcome.HALF
    if len(words) < 3 or words[0] != _CHECKPOINT or words[-1] != _END:
        raise UnreadableError(f"the listing of pool {REWOUND!r} is cut off")
    has_checkpoint, files = words[1] != _NONE, words[2:-1]
    if has_checkpoint and files == ["new"] * _FILES:
        return Outcome.UNDONE
    return Outcome.DONE if not has_checkpoint and files == ["old"] * _FILES else Outcome.HALF


_REWIND = Administration(
    name="rewind",
    words="a pool is rewound to its checkpoint",
    explained="`zpool import --rewind-to-checkpoint`",
    sweep=Sweep.ADMINISTRATION,
    script=f"{_IMPORT} --rewind-to-checkpoint {REWOUND}",
    read=read_rewound,
    questions=(("sh", "-c", _LOOK),),
    prepare=_PREPARE,
    start=(SOON,),
    amid=(CutPoint(delay_ms_max=2_000),),
)


# `zpool scrub`: everything is read and verified while the client continues to write.
#
# zpool-scrub(8). Durable by return: `dsl_scan` waits for its group in `dsl_sync_task` (OpenZFS
# `module/zfs/dsl_scan.c`). ZFS records the scrub's progress from time to time, and an import
# continues there.
#
# A pool remembers one scan. An import that finds a disk with missing writes starts a resilver in
# place of a scrub (`spa_load_impl` in `module/zfs/spa.c`, `dsl_scan_restart_resilver`). From
# then on `zpool status` does not report the scrub.
def read_scrub(printed: Printed) -> Outcome:
    """Judge by the last scan in `zpool status`."""
    state = printed.state_of("scan_stats")
    function = None if state is None else printed.pool()["scan_stats"].get("function")
    if function == "RESILVER":
        raise UnreadableError("zpool status -j: a resilver in the place of a scrub")
    if state is None or function != "SCRUB":
        return Outcome.UNDONE
    states = {"SCANNING": Outcome.GOING_ON, "FINISHED": Outcome.DONE, "NONE": Outcome.UNDONE}
    return states.get(state, Outcome.HALF)


_SCRUB = Administration(
    name="scrub",
    words="the pool is scrubbed",
    explained="`zpool scrub`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool scrub {POOL}",
    read=read_scrub,
    activity="scrub",
    prepare=ballast_script(mib=64),
    start=(SOON, uberblocks(most=4)),
    amid=(uberblocks(least=4, most=12), CutPoint(delay_ms_max=2500)),
)


# `zpool trim`: ZFS informs the disks of all free space.
#
# zpool-trim(8). Durable by return: `spa_vdev_trim` waits for the group that records which disks
# are trimmed (OpenZFS `module/zfs/spa.c`). The trimming continues after the return, and after an
# import (`module/zfs/vdev_trim.c`, `vdev_trim_restart`).

_UNTRIMMED = frozenset({"NONE", "UNTRIMMED"})


def read_trim(printed: Printed) -> Outcome:
    """Judge by the state of each disk in `zpool status -t`."""
    states = {
        str(vdev.get("trim_state"))
        for _, vdev in devices_in(printed.tops())
        if vdev.get("vdev_type") == "disk"
    }
    if not states or "None" in states:
        raise UnreadableError("zpool status -j -t: disks without the state of their trim")
    if states <= _UNTRIMMED:
        return Outcome.UNDONE
    if states == {"COMPLETE"}:
        return Outcome.DONE
    return Outcome.GOING_ON if states <= {"ACTIVE", "COMPLETE"} else Outcome.HALF


_TRIM = Administration(
    name="trim",
    words="the pool is trimmed",
    explained="`zpool trim`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool trim {POOL}",
    read=read_trim,
    questions=(("zpool", "status", "-j", "-t", POOL),),
    activity="trim",
    start=(SOON, uberblocks(most=4)),
    amid=(CutPoint(event=Kind.TRIM_SUBMIT, most=8), CutPoint(event=Kind.TRIM_COMPLETE, most=8)),
)


# `zpool upgrade`: all features of this version are enabled in a pool of an older one.
#
# zpool-upgrade(8), zpool-features(7). A separate call enables each feature and waits for its
# group (OpenZFS `cmd/zpool/zpool_main.c`, `upgrade_enable_all`; `module/zfs/spa.c`,
# `spa_prop_set`). So a cut may leave some features enabled and others not, and repeating the
# command enables the rest. Once it has returned all are enabled.

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


def read_features(printed: Printed) -> Outcome:
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


_UPGRADE = Administration(
    name="upgrade",
    words="the pool is upgraded",
    explained="`zpool upgrade` from 2.1's features",
    sweep=Sweep.ADMINISTRATION,
    script=f"zpool set compatibility=off {POOL}; zpool upgrade {POOL}",
    read=read_features,
    questions=(("zpool", "get", "-j", "all", POOL),),
    pool_options="-o compatibility=openzfs-2.1-linux",
    start=(SOON, uberblocks(most=4)),
    amid=(uberblocks(least=20, most=64),),
)

ADMINISTRATIONS = (*_CHECKPOINTS, _REWIND, _SCRUB, _TRIM, _UPGRADE)
