"""`zfs rollback` of a dataset beside the client's volume: all its files are old, or all are new.

zfs-rollback(8). Durable by return: `dsl_dataset_rollback` waits for its group in `dsl_sync_task`
(OpenZFS `module/zfs/dsl_dataset.c`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import OTHER
from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.volumes import POOL
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError

_FILES = 50
_END = "end"
_WRITE = f"for n in $(seq {_FILES}); do echo {{text}} > /{OTHER}/$n; done"


def read(printed: Printed) -> Outcome:
    """Judge by the content of its files."""
    *lines, last = printed.text("sh").split() or [""]
    if last != _END:
        raise UnreadableError(f"the files of {OTHER} were not read completely")
    if lines == ["new"] * _FILES:
        return Outcome.UNDONE
    return Outcome.DONE if lines == ["old"] * _FILES else Outcome.HALF


ADMINISTRATION = Administration(
    name="rollback",
    words="a dataset is rolled back",
    explained="`zfs rollback`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs rollback {OTHER}@before",
    read=read,
    questions=(("sh", "-c", f"mountpoint -q /{OTHER} && cat /{OTHER}/* && echo {_END}"),),
    prepare=(
        f"set -eu; zfs create {OTHER}; {_WRITE.format(text='old')}; zfs snapshot {OTHER}@before; "
        f"{_WRITE.format(text='new')}; zpool sync {POOL}"
    ),
)
