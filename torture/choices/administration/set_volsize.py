"""`zfs set volsize=` on a volume that reserves its space: size and reservation grow together.

zfsprops(7), volsize: the reservation changes with it, "to prevent unexpected behavior". Durable by
return: `zvol_update_volsize` waits for its group (OpenZFS `module/zfs/zvol.c`), and
`dsl_dataset_set_refreservation` for its own in `dsl_sync_task`. ZFS uses two groups because both
properties are special (`module/zfs/zfs_ioctl.c`, `zfs_set_prop_nvlist`). Repeating the command does
not set the reservation, which is only changed where it fits the present size
(`lib/libzfs/libzfs_dataset.c`, `zfs_add_synthetic_resv`).
"""

from __future__ import annotations

from torture.choices.administration._datasets import OTHER, list_command
from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.facts.axes.sweeps import Sweep
from torture.oracles.verdict.unreadable import UnreadableError

_MIB = 1 << 20
_OLD, _NEW = 64 * _MIB, 128 * _MIB


def read(printed: Printed) -> Outcome:
    """Judge by both properties: a reservation is at least its volume's size, metadata on top."""
    volume = printed.properties().get(OTHER, {})
    try:
        size, reserved = int(volume["volsize"]), int(volume["refreservation"])
    except (KeyError, ValueError) as error:
        raise UnreadableError(f"zfs list -j: no volume with a reservation: {error!r}") from error
    if size == _NEW and reserved >= _NEW:
        return Outcome.DONE
    return Outcome.UNDONE if size == _OLD and _OLD <= reserved < _NEW else Outcome.HALF


ADMINISTRATION = Administration(
    name="set_volsize",
    words="a volume grows",
    explained="`zfs set volsize=`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs set volsize={_NEW} {OTHER}",
    read=read,
    questions=(list_command("volsize", "refreservation"),),
    prepare=f"zfs create -V {_OLD} {OTHER}",
)
