"""Every cell there can be, also those of no matrix."""

from __future__ import annotations

from hypothesis import strategies as st

from torture.matrix.cells import Cell, every_cell

EXAMPLE = "iscsi-standard-noslog-btrfs-nasonly"
EVERY_CELL = tuple(every_cell())

cells = st.sampled_from(EVERY_CELL)


def cell_with(name: str = EXAMPLE, **choices: str) -> Cell:
    """The cell of this name but for these choices."""
    return Cell.parse(name).but(**choices)
