"""The answer at a glance: which settings are safe so far, which go back in time, which lose data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.wording import duration_in_words
from torture.stats.rates import Rate, bound_in_words, interval_in_words, rate_of
from torture.stats.sequential import sequential_rate_of


class Outcome(StrEnum):
    """What was seen of a cell, from best to worst; `UNKNOWN` when nothing was conclusive."""

    SAFE = "safe so far"
    ROLLS_BACK = "goes back in time"
    LOSES = "loses data"
    UNKNOWN = "no answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The cells of one outcome, worst first, and how much all their conclusive trials say together."""

    outcome: Outcome
    cells: tuple[CellFigures, ...]
    together: Rate
    """Of losses, over all their conclusive trials."""

    @property
    def worst_bound(self) -> float:
        """The highest rate that any one of its cells may still have."""
        return max((decisive(figures).high for figures in self.cells), default=1.0)

    @property
    def longest_rollback_ms(self) -> float | None:
        """The longest time that any of its trials went back; None when none did."""
        most = [
            figures.rollback_ms.most for figures in self.cells if figures.rollback_ms is not None
        ]
        return max(most, default=None)

    @property
    def sentence(self) -> str:
        """E.g. `safe so far: 0 of 300 cuts lost acknowledged data, at most 1.23 % at 95 %`."""
        rate = self.together
        cuts = f"{self.outcome}: {rate.events} of {rate.trials} cuts"
        many = len(self.cells) > 1
        match self.outcome:
            case Outcome.UNKNOWN:
                return (
                    f"{self.outcome}: no trial of {len(self.cells)} configurations was conclusive"
                )
            case Outcome.SAFE:
                bound = bound_in_words(self.worst_bound)
                alone = f"; each of {len(self.cells)} configurations at most {bound}"
                return (
                    f"{cuts} lost acknowledged data, at most {bound_in_words(rate.high)} at 95 %"
                    + (alone if many else "")
                )
            case Outcome.ROLLS_BACK:
                ms = self.longest_rollback_ms
                far = "" if ms is None else f", up to {duration_in_words(ms)}"
                return f"{cuts} [{interval_in_words(rate)}] lost the last writes{far}; consistent"
            case Outcome.LOSES:
                return f"{cuts} [{interval_in_words(rate)}] lost or damaged acknowledged data"


def outcome_of(figures: CellFigures) -> Outcome:
    """A cell is called by the worst thing that happened in it."""
    if figures.conclusive == 0:
        return Outcome.UNKNOWN
    if figures.corruption.events:
        return Outcome.LOSES
    return Outcome.ROLLS_BACK if figures.loss.events else Outcome.SAFE


def decisive(figures: CellFigures) -> Rate:
    """How often acknowledged data was lost or what is left is corrupt, whichever was seen more."""
    return max(figures.loss, figures.corruption, key=lambda rate: rate.events)


def answer(cells: Sequence[CellFigures]) -> tuple[Group, ...]:
    """The groups that have cells, from safe to lossy; within one the highest rate comes first."""
    groups = []
    for outcome in Outcome:
        own = [figures for figures in cells if outcome_of(figures) is outcome]
        if not own:
            continue
        own.sort(
            key=lambda figures: (-_share(decisive(figures)), -figures.conclusive, figures.cell)
        )
        groups.append(Group(outcome=outcome, cells=tuple(own), together=_together(own)))
    return tuple(groups)


def _share(rate: Rate) -> float:
    return rate.share if rate.trials else 0.0


def _together(cells: Sequence[CellFigures]) -> Rate:
    rates = [decisive(figures) for figures in cells]
    count = sequential_rate_of if any(rate.is_sequential for rate in rates) else rate_of
    return count(sum(rate.events for rate in rates), sum(rate.trials for rate in rates))
