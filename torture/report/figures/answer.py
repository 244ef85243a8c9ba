"""The answer at a glance: what theory says of each setting, and what was measured beside it.

Settings stand in groups by what was known before any cut, never by what the cuts showed: of cells that
were chosen for having lost nothing, an interval is too good. In 1,938 simulated campaigns over cells that
lose 10 % of cuts the bound of such a group held in 791.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from torture.facts.stats.rates import (
    CONFIDENCE,
    Rate,
    bound_in_words,
    interval_in_words,
    rate_of,
)
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Guarantee
from torture.report.figures.cell_figures import CellFigures, counted_either_way
from torture.report.figures.wording import duration_in_words, either_way_in_words
from torture.report.reading.tally import guarantee_in

RATE_TO_SEE = 0.1
"""Fewer cuts than would have seen losses as frequent as this say nothing of safety."""
_CUTS_TO_SEE = 29
"""The fewest that see one at `RATE_TO_SEE` with 95 % probability: log(0.05) / log(0.9)."""


class Theory(StrEnum):
    """What theory says of a configuration, before any cut."""

    SAFE = "theory says safe"
    ROLLS_BACK = "theory says it goes back in time"
    LOSES = "theory says it may lose data"
    NONE = "no theory"


class Standing(StrEnum):
    """What was measured beside it."""

    SAFE = "safe, as predicted"
    AS_PREDICTED = "as predicted"
    NOT_SEEN = "not seen yet"
    """Theory says that something is lost, and nothing was."""
    TOO_FEW = "too few cuts to say"
    """Nothing was lost where nothing should be, in fewer cuts than would have seen much."""
    OPEN = "left open by inconclusive cuts"
    """Nothing was lost where nothing should be, but for what inconclusive trials may have lost."""
    WORSE = "worse than predicted"
    LOST = "lost something"
    """Where there is no theory."""
    NOTHING_LOST = "nothing lost"
    UNKNOWN = "no answer"
    """No trial was conclusive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The cells of which theory says the same, worst first, and their conclusive trials together."""

    theory: Theory
    cells: tuple[CellFigures, ...]
    together: Rate
    """Of losses. The interval is of the mean over cells, as many trials each as there were."""

    @property
    def worst_bound(self) -> float:
        """No cell of it loses more often than this, at 95 % for all of them at once (Bonferroni)."""
        return self._worst_of([cell.harm for cell in self.cells])

    @property
    def worst_bound_if_lost(self) -> float:
        """The same with each cell's untold trials counted as lost."""
        return self._worst_of([cell.between(cell.harm)[1] for cell in self.cells])

    @property
    def untold(self) -> int:
        """How many trials of its cells may have lost something, for all that is known."""
        return sum(cell.untold for cell in self.cells)

    @property
    def between(self) -> tuple[Rate, Rate]:
        """Its cells together, with the untold trials counted as safe, and as lost."""
        return counted_either_way(self.together, self.untold)

    @property
    def longest_rollback_ms(self) -> float | None:
        """The longest time that any of its trials went back; None when none did."""
        most = [cell.rollback_ms.most for cell in self.cells if cell.rollback_ms is not None]
        return max(most, default=None)

    @property
    def worse(self) -> int:
        """How many of its cells are worse than predicted."""
        return self.of_standing(Standing.WORSE)

    def of_standing(self, standing: Standing) -> int:
        """How many of its cells stand so."""
        return sum(standing_of(cell) is standing for cell in self.cells)

    def _worst_of(self, rates: Sequence[Rate]) -> float:
        confidence = 1 - (1 - CONFIDENCE) / max(1, len(rates))
        return max((_again(rate, confidence).high for rate in rates), default=1.0)

    @property
    def sentence(self) -> str:
        """E.g. `theory says safe: 0 of 300 cuts lost or damaged data, at most 1.23 % at 95 %`."""
        rate = self.together
        parts = [f"{self.theory}: {rate.events} of {rate.trials} cuts"]
        if rate.trials == 0:
            of_all = configurations(len(self.cells))
            parts = [f"{self.theory}: no trial of {of_all} was conclusive"]
        elif rate.events == 0:
            parts[0] += f" lost or damaged data, at most {bound_in_words(rate.high)} at 95 %"
            if len(self.cells) > 1:
                bound = bound_in_words(self.worst_bound)
                if self.untold:
                    bound += (
                        f", {bound_in_words(self.worst_bound_if_lost)} with inconclusive as lost"
                    )
                parts.append(f"each of {configurations(len(self.cells))} at most {bound}")
        else:
            parts[0] += f" [{interval_in_words(rate)}] lost or damaged data"
            if self.longest_rollback_ms is not None:
                parts[0] += f", up to {duration_in_words(self.longest_rollback_ms)} back"
        if rate.trials and (either_way := either_way_in_words(rate, self.untold)):
            parts.append(either_way)
        for standing in (Standing.WORSE, Standing.NOT_SEEN, Standing.TOO_FEW, Standing.OPEN):
            if count := self.of_standing(standing):
                parts.append(f"{configurations(count)} {standing}")
        return "; ".join(parts)


def configurations(count: int) -> str:
    """E.g. `1 configuration`."""
    return f"{count} configuration" + ("" if count == 1 else "s")


def theory_of(figures: CellFigures) -> Theory:
    """By the cell's guarantee, which stands beside its axes and has seen no cut."""
    match guarantee_in(figures.guarantee):
        case Guarantee.SAFE:
            return Theory.SAFE
        case Guarantee.ROLLS_BACK:
            return Theory.ROLLS_BACK
        case Guarantee.LOSES | Guarantee.MAY_LOSE_POOL:
            return Theory.LOSES
        case None:
            return Theory.NONE


def standing_of(figures: CellFigures) -> Standing:
    """What its cuts showed.

    `SAFE` is never said of a cell that theory calls lossy, nor after few cuts, nor where an
    inconclusive trial may have lost something.
    """
    if figures.broken:
        return Standing.WORSE
    if figures.conclusive == 0:
        return Standing.UNKNOWN
    has_lost = figures.harm.events > 0
    match theory_of(figures):
        case Theory.SAFE:
            if figures.conclusive < _CUTS_TO_SEE:
                return Standing.TOO_FEW
            return Standing.OPEN if figures.untold else Standing.SAFE
        case Theory.NONE:
            return Standing.LOST if has_lost else Standing.NOTHING_LOST
        case _:
            return Standing.AS_PREDICTED if has_lost else Standing.NOT_SEEN


def tone_of(figures: CellFigures) -> str:
    """The colour of what was seen: `safe`, `back`, `loses`, or `unknown` where too little was."""
    if figures.conclusive and figures.corruption.events:
        return "loses"
    if figures.conclusive and figures.loss.events:
        return "back"
    return "safe" if standing_of(figures) is Standing.SAFE else "unknown"


def answer(cells: Sequence[CellFigures]) -> tuple[Group, ...]:
    """The groups that have cells, from safe to lossy; within one the highest rate comes first."""
    groups = []
    for theory in Theory:
        own = [figures for figures in cells if theory_of(figures) is theory]
        if not own:
            continue
        own.sort(key=lambda figures: (-_share(figures.harm), -figures.conclusive, figures.cell))
        groups.append(Group(theory=theory, cells=tuple(own), together=_together(own)))
    return tuple(groups)


def _share(rate: Rate) -> float:
    return rate.share if rate.trials else 0.0


def _again(rate: Rate, confidence: float) -> Rate:
    """The same counts with the interval of another confidence."""
    count = sequential_rate_of if rate.is_sequential else rate_of
    return count(rate.events, rate.trials, confidence=confidence)


def _together(cells: Sequence[CellFigures]) -> Rate:
    rates = [figures.harm for figures in cells]
    count = sequential_rate_of if any(rate.is_sequential for rate in rates) else rate_of
    return count(sum(rate.events for rate in rates), sum(rate.trials for rate in rates))
