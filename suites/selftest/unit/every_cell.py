"""Every cell there can be with ZFS's settings as usual, and any cell at all."""

from __future__ import annotations

import contextlib

from hypothesis import strategies as st

from torture.matrix.axes import AXES
from torture.matrix.cells import Cell, every_cell

EXAMPLE = "iscsi-standard-noslog-btrfs-nasonly"
EVERY_CELL = tuple(every_cell())
SETTINGS = tuple(axis for axis in AXES.values() if axis.is_setting)

cells = st.sampled_from(EVERY_CELL)


@st.composite
def any_cell(draw: st.DrawFn) -> Cell:
    """A cell with any settings that make sense with it."""
    cell = draw(cells)
    for axis in draw(st.lists(st.sampled_from(SETTINGS), unique=True)):
        with contextlib.suppress(ValueError):
            cell = cell.but(**{axis.field: draw(st.sampled_from(axis.names))})
    return cell


def cell_with(name: str = EXAMPLE, **choices: str) -> Cell:
    """The cell of this name but for these choices."""
    return Cell.parse(name).but(**choices)
