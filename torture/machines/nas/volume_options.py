"""The options of a cell's volume, from all of the cell's axes."""

from __future__ import annotations

from torture.choices.matrix.axes import DISCARD, LUN_SECTOR, NFS_EXPORT, SETTINGS, SYNC
from torture.choices.matrix.cells import Cell
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.nfs_export import NfsExport


def volume_options_of(cell: Cell) -> VolumeOptions:
    """The volume options that the cell's axes set."""
    return VolumeOptions(
        sync=cell[SYNC],
        properties=cell[SETTINGS].properties,
        is_exported_async=cell[NFS_EXPORT] is NfsExport.ASYNC,
        sector_bytes=cell[LUN_SECTOR],
        takes_discards=cell[DISCARD],
    )
