"""Compares every two cells that differ in one choice: the effect of one setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from torture.choices.matrix.axes import DEFAULTS
from torture.facts.stats.comparison import (
    SIGNIFICANT,
    Comparison,
    compare,
    corrected,
    holm,
    one_sided,
)
from torture.facts.stats.rates import Rate
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.wording import choice_rank


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two rates of the same kind, of `first` and of `second`; `corrected_p` is that of its family."""

    what: str
    """`acknowledged loss`, `corruption`, or `harm` for either of both."""
    axis: str
    """The axis on which the two differ; empty where the same cell is compared between runs."""
    first: CellFigures
    second: CellFigures
    comparison: Comparison
    corrected_p: float

    @property
    def is_worse(self) -> bool:
        """Whether the second rate is significantly higher."""
        return self.comparison.is_worse(self.corrected_p)

    @property
    def is_better(self) -> bool:
        """Whether the second rate is significantly lower."""
        difference = self.comparison.difference
        return self.corrected_p < SIGNIFICANT and difference is not None and difference < 0

    @property
    def first_rate(self) -> Rate:
        """The first one's rate of `what`."""
        return _EVERY_RATE[self.what](self.first)

    @property
    def second_rate(self) -> Rate:
        """The second one's rate of `what`."""
        return _EVERY_RATE[self.what](self.second)


RATES: dict[str, Callable[[CellFigures], Rate]] = {
    "acknowledged loss": lambda figures: figures.loss,
    "corruption": lambda figures: figures.corruption,
}
"""The compared rates of a cell.

Corruption has its own rate: if old but consistent data becomes corrupt, the rate of losses stays the
same.
"""

HARM = "harm"
"""A trial that lost acknowledged data, or damaged data, or both: the one rate of a cell between runs."""
_EVERY_RATE: dict[str, Callable[[CellFigures], Rate]] = RATES | {HARM: lambda figures: figures.harm}

Couple = tuple[str, CellFigures, CellFigures]


def compared(couples: Iterable[Couple]) -> tuple[Pair, ...]:
    """Both rates of each couple (axis, first, second), as one family; only rates that have trials."""
    asked = [
        (what, couple)
        for couple in couples
        for what, rate in RATES.items()
        if rate(couple[1]).trials and rate(couple[2]).trials
    ]
    comparisons = [
        compare(RATES[what](first), RATES[what](second)) for what, (_, first, second) in asked
    ]
    of_holm = holm([comparison.p for comparison in comparisons])
    return tuple(
        Pair(what=what, axis=axis, first=first, second=second, comparison=comparison, corrected_p=p)
        for (what, (axis, first, second)), comparison, p in zip(
            asked, comparisons, of_holm, strict=True
        )
    )


def compared_runs(couples: Iterable[Couple]) -> tuple[Pair, ...]:
    """The rate of harm of each couple (axis, old, new) that has trials, as one family.

    `corrected_p` is one-sided, of the direction in which the pair differs. Each direction is a family
    (`torture.facts.stats.comparison`).
    """
    asked = [couple for couple in couples if couple[1].harm.trials and couple[2].harm.trials]
    worse = corrected([one_sided(old.harm, new.harm) for _, old, new in asked])
    better = corrected([one_sided(new.harm, old.harm) for _, old, new in asked])
    comparisons = [compare(old.harm, new.harm) for _, old, new in asked]
    return tuple(
        Pair(
            what=HARM,
            axis=axis,
            first=old,
            second=new,
            comparison=comparison,
            corrected_p=up if (comparison.difference or 0) > 0 else down,
        )
        for (axis, old, new), comparison, up, down in zip(
            asked, comparisons, worse, better, strict=True
        )
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
