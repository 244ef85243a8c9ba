"""When what a client was told has to be durable in a cell, said as the `sync` of a plain zvol."""

from __future__ import annotations

from torture.choices.matrix.axes import NFS_EXPORT, SYNC, TRANSPORT
from torture.choices.matrix.cells import Cell
from torture.choices.transports.protocol import CompletedWrite
from torture.facts.axes.nfs_export import NfsExport
from torture.facts.axes.sync import Sync


def acknowledged_sync_of(cell: Cell) -> Sync:
    """Of what was acknowledged after a flush, or its like.

    A server that answers before anything is stable, or a client that never asks, makes of standard what
    disabled is, and nothing of always, which ZFS heeds before it answers the server.
    """
    return Sync.DISABLED if names_are_volatile_in(cell) else flushed_data_sync_of(cell)


def names_are_volatile_in(cell: Cell) -> bool:
    """Whether a client is told that names are durable which are not; with always ZFS sees to them."""
    return cell[TRANSPORT].traits.is_metadata_volatile and cell[SYNC] is Sync.STANDARD


def flushed_data_sync_of(cell: Cell) -> Sync:
    """Of data alone, whatever becomes of names that were made, moved or removed."""
    if cell[NFS_EXPORT] is NfsExport.ASYNC and cell[SYNC] is Sync.STANDARD:
        return Sync.DISABLED
    return cell[SYNC]


def completed_sync_of(cell: Cell) -> Sync:
    """Of data that the client's disk or server completed: always where that alone has to be durable."""
    sync = flushed_data_sync_of(cell)
    match cell[TRANSPORT].traits.completed, sync:
        case CompletedWrite.IN_LOG, Sync.STANDARD:
            return Sync.ALWAYS
        case CompletedWrite.IN_PAGE_CACHE, Sync.ALWAYS:
            return Sync.STANDARD
        case _:
            return sync
