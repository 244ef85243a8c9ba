"""How a cell's volume is made and offered, from all of its axes."""

from __future__ import annotations

from torture.axes.nfs_export import NfsExport
from torture.matrix.axes import NFS_EXPORT, SYNC
from torture.matrix.cells import Cell
from torture.volumes import VolumeOptions


def volume_options_of(cell: Cell) -> VolumeOptions:
    """What the cell's axes say of its volume."""
    return VolumeOptions(sync=cell[SYNC], is_exported_async=cell[NFS_EXPORT] is NfsExport.ASYNC)
