"""Where a cell's loads work in the client, and what they are told of the way there (pure)."""

from __future__ import annotations

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.axes import FILESYSTEM
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import Cell
from torture.choices.workloads.protocol import Brought, Place


def place_of(cell: Cell, *, device: str | None, brought: tuple[Brought, ...]) -> Place:
    """The mounted directory, or the bare device; `device` is what the transport gives, if anything."""
    is_mounted = device is None or cell[FILESYSTEM].has_files
    return Place(
        directory=MOUNT_POINT if is_mounted else None,
        device=None if is_mounted else device,
        names_are_stable=terms_of(cell).names_are_stable,
        brought=brought,
    )
