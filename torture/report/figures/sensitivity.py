"""The sensitivity of cuts: how often they detected planted faults."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.choices.matrix.choices import why_different_there
from torture.facts.stats.rates import Rate, rate_of
from torture.report.figures.cell_figures import CellFigures

MEASURED = Path(__file__).with_name("sensitivity.json")
"""The results of a run of `suites/sensitivity`, with the versions of its software (CONTRIBUTING.md)."""
_NEARLY_ALWAYS = 0.9999
_PAIRS_MAX = 2**16


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredFault:
    """A fault in a cell that is sound without it, and in how many cuts it was detected."""

    name: str
    words: str
    cell: str
    detected: int
    cuts: int
    bound_to: tuple[str, ...] = ()
    amounts_to: Mapping[str, str] = field(default_factory=dict)
    """The cells in which it is the same fault (`torture.choices.matrix.choices`)."""

    @property
    def rate(self) -> Rate:
        """The rate of cuts that detected it."""
        return rate_of(self.detected, self.cuts)

    def cuts_like(self, cells: Iterable[CellFigures]) -> int:
        """The conclusive cuts of the cells to which its measured rate applies."""
        return sum(figures.conclusive for figures in cells if self._is_alike(figures.cell))

    def _is_alike(self, name: str) -> bool:
        """Whether that cell has the same transport, and the fault is the same there."""
        return _is_alike(self.cell, name, self.bound_to, tuple(self.amounts_to.items()))

    def share_of_runs(self, cuts: int) -> float:
        """The share of runs of so many cuts that detect it, at least: by the lower bound of its rate."""
        return float(1 - (1 - self.rate.low) ** cuts)

    def in_words(self, cuts: int) -> str:
        """E.g. `at least 99 %`, rounded down; without cuts, that it was not measured."""
        if cuts == 0:
            return "not measured in such cells"
        share = self.share_of_runs(cuts)
        if share > _NEARLY_ALWAYS:
            return f"more than {_NEARLY_ALWAYS * 100:g} %"
        return f"at least {int(share * 100)} %"


@lru_cache(maxsize=_PAIRS_MAX)
def _fault_cell(name: str) -> Cell:
    return Cell.parse(name)


@lru_cache(maxsize=_PAIRS_MAX)
def _known_cell(name: str) -> Cell | None:
    """The cell of a name; None for one of another version of the suite."""
    try:
        return Cell.parse(name)
    except ValueError:
        return None


@lru_cache(maxsize=_PAIRS_MAX)
def _is_alike(
    own: str, name: str, bound_to: tuple[str, ...], amounts_to: tuple[tuple[str, str], ...]
) -> bool:
    """Whether a fault of a cell is the same in another one; a page asks it of each pair several times."""
    here, there = _fault_cell(own), _known_cell(name)
    bound = (TRANSPORT.field, *bound_to)
    # most cells differ here already, and this costs least
    if there is None or here[TRANSPORT] is not there[TRANSPORT]:
        return False
    return not why_different_there(here, there, bound_to=bound, amounts_to=dict(amounts_to))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sensitivity:
    """The faults, and the versions of the software with which they were measured.

    `on_transports`: some of the faults once more, on transports other than their cell's.
    """

    versions: dict[str, str]
    faults: tuple[MeasuredFault, ...]
    on_transports: tuple[MeasuredFault, ...] = ()

    @property
    def sentence(self) -> str:
        """How many of the faults were detected in every cut; empty without any."""
        if not self.faults:
            return ""
        always = sum(fault.detected == fault.cuts for fault in self.faults)
        return (
            f"Of {len(self.faults)} faults planted on purpose, {always} were detected in every cut."
        )

    def of(self, cells: Sequence[CellFigures]) -> tuple[MeasuredFault, ...]:
        """All faults, each followed by its measurements on these cells' other transports."""
        return tuple(
            measured
            for fault in self.faults
            for measured in (fault, *self.on_transports)
            if measured is fault or (measured.words == fault.words and measured.cuts_like(cells))
        )


@cache
def measured_sensitivity(file: Path = MEASURED) -> Sensitivity:
    """The stored table; raises `ValueError` or `KeyError` when it is garbled, `OSError`."""
    content: dict[str, Any] = json.loads(file.read_text())
    return Sensitivity(
        versions=content["versions"],
        faults=_faults(content["faults"]),
        on_transports=_faults(content["on_transports"]),
    )


def _faults(rows: Sequence[dict[str, Any]]) -> tuple[MeasuredFault, ...]:
    return tuple(
        MeasuredFault(
            name=row["name"],
            words=row["words"],
            cell=row["cell"],
            detected=row["detected"],
            cuts=row["cuts"],
            bound_to=tuple(row["bound_to"]),
            amounts_to=row["amounts_to"],
        )
        for row in rows
    )
