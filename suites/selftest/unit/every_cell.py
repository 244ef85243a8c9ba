"""Every cell there can be, also those of no matrix."""

from __future__ import annotations

from torture.matrix.cells import every_cell

EVERY_CELL = tuple(every_cell())
