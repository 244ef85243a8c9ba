"""What would have been seen: planted faults, as they were measured, against so many cuts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.matrix.axes import TRANSPORT
from torture.matrix.cells import Cell
from torture.report.figures.cell_figures import CellFigures
from torture.stats.rates import rate_of

MEASURED = Path(__file__).with_name("sensitivity.json")
"""Kept from a run of `suites/sensitivity`, with the versions it was measured with (CONTRIBUTING.md)."""
_NEARLY_ALWAYS = 0.9999


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredFault:
    """A fault, and in how many cuts of how many it was seen, where all is sound without it."""

    words: str
    cell: str
    detected: int
    cuts: int
    bound_to: tuple[str, ...] = ()
    """The axes, beside the transport, without whose choices it is another fault, or none."""

    def cuts_like(self, cells: Iterable[CellFigures]) -> int:
        """The conclusive cuts of the cells that its measured rate says something of."""
        measured = Cell.parse(self.cell).axes
        axes = (TRANSPORT.field, *self.bound_to)
        return sum(
            cell.conclusive
            for cell in cells
            if all(cell.axes.get(axis) == measured[axis] for axis in axes)
        )

    def share_of_runs(self, cuts: int) -> float:
        """In which part of runs of so many cuts it is seen, at least: by the lower bound of its rate."""
        low = rate_of(self.detected, self.cuts).low
        return float(1 - (1 - low) ** cuts)

    def in_words(self, cuts: int) -> str:
        """E.g. `at least 99 %`, rounded down; of no cuts that there is nothing to say it by."""
        if cuts == 0:
            return "not measured on this road"
        share = self.share_of_runs(cuts)
        if share > _NEARLY_ALWAYS:
            return f"more than {_NEARLY_ALWAYS * 100:g} %"
        return f"at least {int(share * 100)} %"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sensitivity:
    """The faults, and what they were measured with: a name of each version to it."""

    versions: dict[str, str]
    faults: tuple[MeasuredFault, ...]


def measured_sensitivity(file: Path = MEASURED) -> Sensitivity:
    """The table that is kept; raises `ValueError` or `KeyError` when it is garbled, `OSError`."""
    content: dict[str, Any] = json.loads(file.read_text())
    return Sensitivity(versions=content["versions"], faults=_faults(content["faults"]))


def _faults(rows: Sequence[dict[str, Any]]) -> tuple[MeasuredFault, ...]:
    return tuple(
        MeasuredFault(
            words=row["words"],
            cell=row["cell"],
            detected=row["detected"],
            cuts=row["cuts"],
            bound_to=tuple(row["bound_to"]),
        )
        for row in rows
    )
