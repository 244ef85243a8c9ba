"""Compares two cells of the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.pairs import Pair, compared
from torture.report.reading.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class CellComparison:
    """Two cells of the same runs, compared; no pairs without conclusive trials."""

    pairs: tuple[Pair, ...]
    remarks: tuple[str, ...]
    """Notes on the records."""


def compare_cells(runs: Sequence[Path], first: str, second: str) -> CellComparison:
    """Compare the rates of two cells; raises `HarnessError` for an unknown cell or run."""
    with Store.open(runs) as store:
        cells = {figures.cell: figures for figures in cell_figures(store.tallies())}
        notes = store.notes
    for name in (first, second):
        if name not in cells:
            raise HarnessError(
                f"the runs have no trial of {name}", hint=f"one of: {', '.join(cells)}"
            )
    unresolved = (
        f"{cells[name].unresolved} trials of {name} are inconclusive, and not counted here"
        for name in (first, second)
        if cells[name].unresolved
    )
    pairs = compared([("", cells[first], cells[second])])
    return CellComparison(pairs=pairs, remarks=(*unresolved, *notes))


def pair_in_words(pair: Pair) -> str:
    """The comparison of two cells, as a sentence."""
    if pair.is_worse or pair.is_better:
        change = "higher" if pair.is_worse else "lower"
        return f"harm: {pair.second.cell} is significantly {change} than {pair.first.cell}"
    return "harm: no significant difference"
