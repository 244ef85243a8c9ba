"""The `sync` of a plain zvol that is as durable as a cell."""

from __future__ import annotations

from torture.choices.matrix.axes import NFS_EXPORT, SETTINGS, SYNC, TRANSPORT
from torture.choices.matrix.cells import Cell
from torture.choices.transports.protocol import CompletedWrite
from torture.facts.axes.sync import NfsExport, Sync
from torture.oracles.audit.commits import LATE_MS


def acknowledged_sync_of(cell: Cell) -> Sync:
    """The sync level of writes acknowledged after a flush, or an equivalent.

    A server that answers before data are stable turns standard into disabled. So does a client that
    never asks for stable data. `always` is unaffected: ZFS obeys it before it answers the server.
    """
    return Sync.DISABLED if names_are_volatile_in(cell) else flushed_data_sync_of(cell)


def names_are_volatile_in(cell: Cell) -> bool:
    """Whether the client receives answers before names are durable; with always ZFS prevents it."""
    return cell[TRANSPORT].traits.is_metadata_volatile and cell[SYNC] is Sync.STANDARD


def flushed_data_sync_of(cell: Cell) -> Sync:
    """The sync level of data alone, without new, moved or removed names."""
    if cell[NFS_EXPORT] is NfsExport.ASYNC and cell[SYNC] is Sync.STANDARD:
        return Sync.DISABLED
    return cell[SYNC]


def completed_sync_of(cell: Cell) -> Sync:
    """The sync level of data that the client's disk or server completed.

    It is `always` where a completed write alone has to be durable.
    """
    sync = flushed_data_sync_of(cell)
    match cell[TRANSPORT].traits.completed, sync:
        case CompletedWrite.IN_LOG, Sync.STANDARD:
            return Sync.ALWAYS
        case CompletedWrite.IN_PAGE_CACHE, Sync.ALWAYS:
            return Sync.STANDARD
        case _:
            return sync


_TXG_TIMEOUT_S = 5
"""ZFS's own `zfs_txg_timeout` (zfs(4))."""


def late_ms_of(cell: Cell) -> int:
    """How long after an acknowledgement a transaction group may begin: longer where ZFS is set so."""
    value = cell[SETTINGS].tunables.get("zfs_txg_timeout", "")
    timeout_s = int(value) if value.isdecimal() else _TXG_TIMEOUT_S
    return LATE_MS + max(0, timeout_s - _TXG_TIMEOUT_S) * 1000
