"""What would have been seen: planted faults, as they were measured, against so many cuts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torture.choices.matrix.axes import TRANSPORT
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.same_fault import why_different_there
from torture.facts.stats.rates import Rate, rate_of
from torture.report.figures.cell_figures import CellFigures

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
    amounts_to: Mapping[str, str] = field(default_factory=dict)
    """In which cells it is the same fault (`torture.choices.matrix.same_fault`)."""

    @property
    def transport(self) -> str:
        """The road that it was measured on, by its name."""
        return Cell.parse(self.cell).axes[TRANSPORT.field]

    @property
    def rate(self) -> Rate:
        """Of cuts in which it was seen."""
        return rate_of(self.detected, self.cuts)

    def cuts_like(self, cells: Iterable[CellFigures]) -> int:
        """The conclusive cuts of the cells that its measured rate says something of."""
        return sum(figures.conclusive for figures in cells if self._is_alike(figures.cell))

    def _is_alike(self, name: str) -> bool:
        """Whether it is the same fault in that cell, on the road it was measured on."""
        here = Cell.parse(self.cell)
        try:
            there = Cell.parse(name)
        except ValueError:  # of another version of the suite
            return False
        bound_to, amounts_to = (TRANSPORT.field, *self.bound_to), self.amounts_to
        return not why_different_there(here, there, bound_to=bound_to, amounts_to=amounts_to)

    def share_of_runs(self, cuts: int) -> float:
        """In which part of runs of so many cuts it is seen, at least: by the lower bound of its rate."""
        return float(1 - (1 - self.rate.low) ** cuts)

    def in_words(self, cuts: int) -> str:
        """E.g. `at least 99 %`, rounded down; of no cuts that there is nothing to say it by."""
        if cuts == 0:
            return "not measured in such cells"
        share = self.share_of_runs(cuts)
        if share > _NEARLY_ALWAYS:
            return f"more than {_NEARLY_ALWAYS * 100:g} %"
        return f"at least {int(share * 100)} %"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sensitivity:
    """The faults, and what they were measured with: a name of each version to it.

    `on_roads`: some of them once more, on other roads than that of their cell.
    """

    versions: dict[str, str]
    faults: tuple[MeasuredFault, ...]
    on_roads: tuple[MeasuredFault, ...] = ()

    def of(self, cells: Sequence[CellFigures]) -> tuple[MeasuredFault, ...]:
        """All of them, each followed by what was measured of it on these cells' other roads."""
        return tuple(
            measured
            for fault in self.faults
            for measured in (fault, *self.on_roads)
            if measured is fault or (measured.words == fault.words and measured.cuts_like(cells))
        )

    def of_road(self, transport: str) -> tuple[MeasuredFault, ...]:
        """Those of a road that were planted on several."""
        several = {fault.words for fault in self.on_roads}
        every = (*self.faults, *self.on_roads)
        return tuple(one for one in every if one.transport == transport and one.words in several)


def measured_sensitivity(file: Path = MEASURED) -> Sensitivity:
    """The table that is kept; raises `ValueError` or `KeyError` when it is garbled, `OSError`."""
    content: dict[str, Any] = json.loads(file.read_text())
    return Sensitivity(
        versions=content["versions"],
        faults=_faults(content["faults"]),
        on_roads=_faults(content["on_roads"]),
    )


def _faults(rows: Sequence[dict[str, Any]]) -> tuple[MeasuredFault, ...]:
    return tuple(
        MeasuredFault(
            words=row["words"],
            cell=row["cell"],
            detected=row["detected"],
            cuts=row["cuts"],
            bound_to=tuple(row["bound_to"]),
            amounts_to=row["amounts_to"],
        )
        for row in rows
    )
