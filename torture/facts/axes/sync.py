"""When data are stable: the volume's `sync` property (zfsprops(7)), and the export of an NFS server."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Chosen, choices_of
from torture.facts.axes.sweeps import (
    ADMINISTRATION_SWEEPS,
    EVERY_SWEEP,
    HYPERVISOR_SWEEPS,
    OUTAGE_SWEEPS,
    Sweep,
)


class Sync(StrEnum):
    """When ZFS writes its intent log."""

    STANDARD = "standard"
    """When the client requests it: with a flush, FUA or O_SYNC."""
    ALWAYS = "always"
    """With every write."""
    DISABLED = "disabled"
    """Never."""


_STANDARD_ONLY = OUTAGE_SWEEPS | {Sweep.DATASTORES, Sweep.TRANSPORTS, Sweep.BOOT_FILESYSTEMS}
_ALWAYS_ONLY = frozenset({Sweep.LOG_DEVICES, Sweep.LOG_SPEEDS, Sweep.TRANSPORTS_BEHIND_ALWAYS})
_JOINS = {
    Sync.STANDARD: EVERY_SWEEP - _ALWAYS_ONLY,
    Sync.ALWAYS: EVERY_SWEEP - _STANDARD_ONLY - ADMINISTRATION_SWEEPS,
    Sync.DISABLED: EVERY_SWEEP
    - _ALWAYS_ONLY
    - _STANDARD_ONLY
    - ADMINISTRATION_SWEEPS
    - HYPERVISOR_SWEEPS,
}

AXIS = Axis(
    field="sync",
    noun="Sync",
    title="sync",
    place=20,
    is_always_shown=True,
    varies_last=True,
    choices=choices_of({sync: (f"sync={sync}", "") for sync in Sync}, _JOINS),
)


# When an NFS server answers (exports(5)).
#
# With `async` Linux ignores commits: a write's answer claims the requested stability, and COMMIT
# does nothing (Linux fs/nfsd/vfs.c, `nfsd_vfs_write`, `nfsd_commit`). ZFS's own `sync=always`
# still holds.
class NfsExport(StrEnum):
    """The option of the export."""

    SYNC = "export_sync"
    ASYNC = "export_async"


def _inapplicable(chosen: Chosen) -> str | None:
    transport = chosen["transport"]
    return None if transport.value.traits.is_nfs else f"is for NFS; {transport.name} has no export"


_ANSWERS = {
    NfsExport.SYNC: ("export sync", ""),
    NfsExport.ASYNC: ("export async", "answers before anything is stable"),
}
_EXPORT_JOINS = {
    NfsExport.SYNC: EVERY_SWEEP,
    NfsExport.ASYNC: frozenset({Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT, Sweep.LIBNFS_DIRECTSYNC}),
}

NFS_EXPORT = Axis(
    field="nfs_export",
    noun="NFS export",
    title="NFS export",
    place=15,
    default=NfsExport.SYNC.value,
    inapplicable=_inapplicable,
    choices=choices_of(_ANSWERS, _EXPORT_JOINS),
)
