"""When an NFS server answers (exports(5)).

With `async` Linux ignores commits: a write's answer claims the requested stability, and COMMIT does
nothing (Linux fs/nfsd/vfs.c, `nfsd_vfs_write`, `nfsd_commit`). ZFS's own `sync=always` still holds.
"""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Chosen, choices_of
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep


class NfsExport(StrEnum):
    """The option of the export."""

    SYNC = "export_sync"
    ASYNC = "export_async"


def _inapplicable(chosen: Chosen) -> str | None:
    transport = chosen["transport"]
    return None if transport.value.traits.is_nfs else f"is for NFS; {transport.name} has no export"


_WORDS = {
    NfsExport.SYNC: ("export sync", ""),
    NfsExport.ASYNC: ("export async", "answers before anything is stable"),
}
_JOINS = {
    NfsExport.SYNC: EVERY_SWEEP,
    NfsExport.ASYNC: frozenset({Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
}

AXIS = Axis(
    field="nfs_export",
    noun="NFS export",
    title="NFS export",
    place=15,
    default=NfsExport.SYNC.value,
    inapplicable=_inapplicable,
    choices=choices_of(_WORDS, _JOINS),
)
