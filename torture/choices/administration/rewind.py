"""`zpool import --rewind-to-checkpoint`: a pool goes back to its checkpoint, all or nothing.

The client's own pool cannot be rewound while the client has its disk. So the rewound pool lies on a
file of a dataset beside it: its flushes are durable by that dataset's intent log.

zpool-import(8). Durable by return: `spa_ld_checkpoint_rewind` writes the checkpoint's uberblock, as
that of the next group, by `vdev_config_sync` (OpenZFS `module/zfs/spa.c`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import OTHER
from torture.choices.administration.protocol import SOON, Administration, CutPoint, Outcome, Printed
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError

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


def read(printed: Printed) -> Outcome:
    """Judge by the content of its files, and whether it still has a checkpoint."""
    words = printed.text("sh").split()
    if words[-1:] == [_REFUSED]:
        return Outcome.HALF
    if len(words) < 3 or words[0] != _CHECKPOINT or words[-1] != _END:
        raise UnreadableError(f"the pool {REWOUND} was not read completely")
    has_checkpoint, files = words[1] != _NONE, words[2:-1]
    if has_checkpoint and files == ["new"] * _FILES:
        return Outcome.UNDONE
    return Outcome.DONE if not has_checkpoint and files == ["old"] * _FILES else Outcome.HALF


ADMINISTRATION = Administration(
    name="rewind",
    words="a pool is rewound to its checkpoint",
    explained="`zpool import --rewind-to-checkpoint`",
    sweep=Sweep.ADMINISTRATION,
    script=f"{_IMPORT} --rewind-to-checkpoint {REWOUND}",
    read=read,
    questions=(("sh", "-c", _LOOK),),
    prepare=_PREPARE,
    start=(SOON,),
    amid=(CutPoint(delay_ms_max=2_000),),
)
