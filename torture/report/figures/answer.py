"""The answer at a glance: theory's prediction for each configuration, and the measurement.

Configurations are grouped by theory, which is known before any cut, and never by the outcome of cuts. An
interval over cells chosen since they lost nothing would be too good. In 1,938 simulated campaigns over
cells that lose 10 % of cuts, the bound of such a group held in 791.
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
from torture.report.figures.cell_figures import CellFigures, rates_either_way
from torture.report.figures.wording import duration_in_words, either_way_in_words
from torture.report.reading.tally import guarantee_in

RATE_TO_DETECT = 0.1
"""Fewer cuts than losses of this rate need to show up say nothing about safety."""
CUTS_TO_DETECT = 29
"""The fewest cuts that show a loss of rate `RATE_TO_DETECT` with 95 % probability: log(0.05) / log(0.9).
"""


class Theory(StrEnum):
    """Theory's prediction for a configuration, before any cut."""

    SAFE = "theory says safe"
    ROLLS_BACK = "theory says it goes back in time"
    LOSES = "theory says it may lose data"
    NONE = "no theory"


class Standing(StrEnum):
    """The measurement, compared with theory."""

    SAFE = "safe, as predicted"
    AS_PREDICTED = "as predicted"
    NOT_SEEN = "not seen yet"
    """Theory predicts a loss, and no trial had one."""
    TOO_FEW = "too few cuts to say"
    """No loss where theory predicts none, in too few cuts to show frequent losses."""
    OPEN = "left open by inconclusive cuts"
    """No loss where theory predicts none, but inconclusive trials may have lost data."""
    WORSE = "worse than predicted"
    LOST = "lost something"
    """A loss where there is no theory."""
    NOTHING_LOST = "nothing lost"
    UNKNOWN = "no answer"
    """No trial was conclusive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The cells with the same prediction, worst first, and their conclusive trials together."""

    theory: Theory
    cells: tuple[CellFigures, ...]
    together: Rate
    """The rate of losses. The interval is that of the mean over cells, weighted by their trials."""

    @property
    def worst_bound(self) -> float:
        """The upper bound of every cell's rate of losses, at 95 % for all cells at once (Bonferroni)."""
        return self._worst_of([cell.harm for cell in self.cells])

    @property
    def worst_bound_if_lost(self) -> float:
        """The same with each cell's unresolved trials counted as lost."""
        return self._worst_of([cell.either_way(cell.harm)[1] for cell in self.cells])

    @property
    def unresolved(self) -> int:
        """How many trials of its cells are inconclusive and may have lost data."""
        return sum(cell.unresolved for cell in self.cells)

    @property
    def either_way(self) -> tuple[Rate, Rate]:
        """Its cells together, with the unresolved trials counted as safe, and as lost."""
        return rates_either_way(self.together, self.unresolved)

    @property
    def longest_rollback_ms(self) -> float | None:
        """The longest rollback of its trials; None without a rollback."""
        most = [cell.rollback_ms.most for cell in self.cells if cell.rollback_ms is not None]
        return max(most, default=None)

    @property
    def worse(self) -> int:
        """How many of its cells are worse than predicted."""
        return self.of_standing(Standing.WORSE)

    def of_standing(self, standing: Standing) -> int:
        """How many of its cells have this standing."""
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
                if self.unresolved:
                    bound += (
                        f", {bound_in_words(self.worst_bound_if_lost)} with inconclusive as lost"
                    )
                parts.append(f"each of {configurations(len(self.cells))} at most {bound}")
        else:
            parts[0] += f" [{interval_in_words(rate)}] lost or damaged data"
            if self.longest_rollback_ms is not None:
                parts[0] += f", up to {duration_in_words(self.longest_rollback_ms)} back"
        if rate.trials and (either_way := either_way_in_words(rate, self.unresolved)):
            parts.append(either_way)
        for standing in (Standing.WORSE, Standing.NOT_SEEN, Standing.TOO_FEW, Standing.OPEN):
            if count := self.of_standing(standing):
                parts.append(f"{configurations(count)} {standing}")
        return "; ".join(parts)


def configurations(count: int) -> str:
    """E.g. `1 configuration`."""
    return f"{count} configuration" + ("" if count == 1 else "s")


def theory_of(figures: CellFigures) -> Theory:
    """The prediction by the cell's guarantee, which depends on its axes and on no cut."""
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
    """The standing of a cell by its cuts.

    `SAFE` requires that theory predicts no loss, that there are enough cuts, and that no inconclusive
    trial may have lost data.
    """
    if figures.broken:
        return Standing.WORSE
    if figures.conclusive == 0:
        return Standing.UNKNOWN
    has_lost = figures.harm.events > 0
    match theory_of(figures):
        case Theory.SAFE:
            if figures.conclusive < CUTS_TO_DETECT:
                return Standing.TOO_FEW
            return Standing.OPEN if figures.unresolved else Standing.SAFE
        case Theory.NONE:
            return Standing.LOST if has_lost else Standing.NOTHING_LOST
        case _:
            return Standing.AS_PREDICTED if has_lost else Standing.NOT_SEEN


def tone_of(figures: CellFigures) -> str:
    """The colour of the outcome: `safe`, `back`, `loses`, or `unknown` after too few cuts."""
    if figures.conclusive and figures.corruption.events:
        return "loses"
    if figures.conclusive and figures.loss.events:
        return "back"
    return "safe" if standing_of(figures) is Standing.SAFE else "unknown"


def fastest_safe(cells: Sequence[CellFigures]) -> list[CellFigures]:
    """The cells of a known speed that theory calls safe and that lost nothing: the fastest first.

    The order depends on no loss, so each interval still covers its rate.
    """
    safe = [
        figures
        for figures in cells
        if theory_of(figures) is Theory.SAFE
        and figures.conclusive
        and figures.worth.durable_per_s is not None
        and not figures.harm.events
        and not figures.broken
    ]
    return sorted(safe, key=lambda figures: (-(figures.worth.durable_per_s or 0), figures.cell))


def answer(cells: Sequence[CellFigures]) -> tuple[Group, ...]:
    """The groups with cells, from safe to lossy; the highest rate comes first in each."""
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
