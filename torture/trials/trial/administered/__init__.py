"""An administration in a trial: prepared, issued while the load runs, and asked about after the cut."""

from __future__ import annotations

from torture.choices.matrix.axes import ADMINISTRATION
from torture.choices.matrix.cells import Cell


def preparation_of(cell: Cell) -> str:
    """Shell: what the NAS of this cell needs before any client attaches its volume; empty for nothing."""
    administration = cell[ADMINISTRATION]
    return "" if administration is None else administration.prepare
