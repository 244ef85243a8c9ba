"""Compares two cells of the same runs, and every two that differ in one choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.choices.matrix.axes import DEFAULTS
from torture.errors import HarnessError
from torture.facts.stats.comparison import SIGNIFICANT, Comparison, compare, corrected, one_sided
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.wording import choice_rank
from torture.report.reading.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """The rates of harm of `first` and of `second`: trials that lost or damaged data, or both.

    `corrected_p` is that of its family, one-sided, of the direction in which the two differ.
    """

    axis: str
    """The axis on which the two differ; empty where the same cell is compared between runs."""
    first: CellFigures
    second: CellFigures
    comparison: Comparison
    corrected_p: float

    @property
    def is_worse(self) -> bool:
        """Whether the second rate is significantly higher."""
        return self.corrected_p < SIGNIFICANT and (self.comparison.difference or 0) > 0

    @property
    def is_better(self) -> bool:
        """Whether the second rate is significantly lower."""
        return self.corrected_p < SIGNIFICANT and (self.comparison.difference or 0) < 0


Couple = tuple[str, CellFigures, CellFigures]


def compared(couples: Iterable[Couple], *, is_between_runs: bool = False) -> tuple[Pair, ...]:
    """The pair of each couple (axis, first, second) that has trials, the most significant first.

    All are one family, with both directions (`torture.facts.stats.comparison`). Between runs, one
    question is whether cells got worse, and each direction is a family. The intervals of all
    differences hold at once.
    """
    asked = [couple for couple in couples if couple[1].harm.trials and couple[2].harm.trials]
    worse = [one_sided(first.harm, second.harm) for _, first, second in asked]
    better = [one_sided(second.harm, first.harm) for _, first, second in asked]
    families = [worse, better] if is_between_runs else [worse + better]
    ps = [p for family in families for p in corrected(family)]
    rates = {
        (side if is_between_runs else 0, figures.cell)
        for couple in asked
        for side, figures in enumerate(couple[1:])
    }
    comparisons = [compare(first.harm, second.harm, of=len(rates)) for _, first, second in asked]
    pairs = [
        Pair(
            axis=axis,
            first=first,
            second=second,
            comparison=comparison,
            corrected_p=up if (comparison.difference or 0) > 0 else down,
        )
        for (axis, first, second), comparison, up, down in zip(
            asked, comparisons, ps[: len(asked)], ps[len(asked) :], strict=True
        )
    ]
    return tuple(
        sorted(pairs, key=lambda pair: (pair.corrected_p, -abs(pair.comparison.difference or 0)))
    )


def neighbours(cells: Sequence[CellFigures]) -> list[Couple]:
    """Every two cells that differ on one axis only, as `compared` takes them."""
    couples = []
    by_rest: dict[tuple[str, frozenset[tuple[str, str]]], list[CellFigures]] = {}
    for figures in cells:
        for axis in figures.axes:
            # a cell without a SLOG has no SLOG speed; it differs from one with the usual speed in one
            # choice
            rest = frozenset(
                (key, choice or DEFAULTS.get(key, ""))
                for key, choice in figures.axes.items()
                if key != axis
            )
            by_rest.setdefault((axis, rest), []).append(figures)
    for (axis, _), alike in by_rest.items():
        alike.sort(key=lambda figures: choice_rank(axis, figures.axes[axis]))
        couples += [
            (axis, first, second)
            for place, first in enumerate(alike)
            for second in alike[place + 1 :]
        ]
    return couples


def same_cells(old: Mapping[str, CellFigures], new: Mapping[str, CellFigures]) -> list[Couple]:
    """Each cell that both runs have, as `compared` takes them."""
    return [("", old[name], new[name]) for name in sorted(old.keys() & new.keys())]


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
