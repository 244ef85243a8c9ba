"""A cell's figures, computed from the counts of its trials' outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from torture.facts.stats.rates import Rate, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Verdict
from torture.report.reading.tally import (
    CellTally,
    FirstTry,
    Spread,
    Survey,
    SurveyKind,
    TrialKind,
    Worth,
    survey_kinds,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CellRates:
    """The outcomes of a cell's trials. Rates count conclusive trials only.

    - `loss`: trials that lost acknowledged data, whatever the verdict.
    - `corruption`: trials whose verdict is worse than consistent but old.
    - `harm`: trials with either.
    """

    cell: str
    guarantee: str
    trials: int
    verdicts: dict[Verdict, int]
    """The verdicts that occurred."""
    loss: Rate
    corruption: Rate
    harm: Rate
    broken: int
    """Trials that are worse than guaranteed, too long rollbacks included.

    An inconclusive trial counts by its audit, or by an acknowledgement while there was no NAS.
    """
    empty: int = 0
    """Inconclusive trials whose cut had nothing to lose."""
    confirmations: int = 0
    """Conclusive trials that were cut at the moment of a finding instead of the drawn one."""

    @property
    def inconclusive(self) -> int:
        """Trials without a statement about the data."""
        return self.verdicts.get(Verdict.INCONCLUSIVE, 0)

    @property
    def unresolved(self) -> int:
        """Inconclusive trials that may have lost data."""
        return self.inconclusive - self.empty

    def either_way(self, rate: Rate) -> tuple[Rate, Rate]:
        """A rate of this cell with the unresolved trials counted as safe, and as lost."""
        return rates_either_way(rate, self.unresolved)

    @property
    def conclusive(self) -> int:
        """The trials that the rates count."""
        return self.trials - self.inconclusive - self.confirmations


def rates_either_way(rate: Rate, unresolved: int) -> tuple[Rate, Rate]:
    """The rate with so many more trials: without an event, and each with an event."""
    of = sequential_rate_of if rate.is_sequential else rate_of
    trials = rate.trials + unresolved
    return (
        of(rate.events, trials, later=rate.later),
        of(rate.events + unresolved, trials, later=rate.later),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class CellFigures(CellRates):
    """Further figures of a cell's trials; as in `CellTally`."""

    axes: dict[str, str]
    acknowledged_per_s: float | None
    rollback_ms: Spread | None
    worth: Worth = field(default_factory=Worth)
    checked: int = 0
    acknowledged_in_outage: int = 0
    surveys: tuple[Survey, ...] = ()

    @property
    def is_worse(self) -> bool:
        """Whether a cut or a survey was worse than guaranteed."""
        return self.broken > 0 or self.broken_surveys > 0

    @property
    def broken_surveys(self) -> int:
        """Surveyed recordings that are worse than guaranteed."""
        return sum(survey.broken for survey in self.surveys)

    @property
    def has_answer(self) -> bool:
        """Whether a cut or a survey was conclusive."""
        return self.conclusive > 0 or any(survey.recordings for survey in self.surveys)

    @property
    def survey_counts(self) -> dict[str, int]:
        """Its surveys, as columns of exports; all 0 without one."""
        none = {column: 0 for kind in survey_kinds() for column in kind.columns}
        return none | {name: n for survey in self.surveys for name, n in survey.counts.items()}

    def survey_of(self, kind: SurveyKind) -> Survey | None:
        """The one of this kind."""
        return next((survey for survey in self.surveys if survey.kind == kind.name), None)

    @property
    def is_open(self) -> bool:
        """Whether an inconclusive cut or survey may have lost data."""
        return self.unresolved > 0 or any(survey.inconclusive for survey in self.surveys)

    @property
    def harmfulness(self) -> tuple[bool, float, bool, float]:
        """Sorts cells by their outcome, the worst last: damage, the rate, a breach, then the bound."""
        rate = self.harm.share if self.harm.events else 0.0
        return (self.corruption.events > 0, rate, self.is_worse, self.harm.high)


def cell_rates(
    cell: str, *, guarantee: str, counts: Mapping[TrialKind, int], is_sequential: bool
) -> CellRates:
    """The rates of a cell with so many trials of each kind."""
    verdicts: Counter[Verdict] = Counter()
    for kind, count in counts.items():
        verdicts[kind.verdict] += count
    conclusive = {
        kind: count
        for kind, count in counts.items()
        if kind.verdict is not Verdict.INCONCLUSIVE and not kind.is_confirmation
    }
    rate_with = sequential_rate_of if is_sequential else rate_of

    def rate(is_event: Callable[[FirstTry], bool]) -> Rate:
        events = [
            (count, kind.first is not None and not is_event(kind.first))
            for kind, count in conclusive.items()
            if is_event(FirstTry(kind.is_loss, kind.verdict.is_corruption))
        ]
        return rate_with(
            sum(count for count, _ in events),
            sum(conclusive.values()),
            later=sum(count for count, is_later in events if is_later),
        )

    return CellRates(
        cell=cell,
        guarantee=guarantee,
        trials=verdicts.total(),
        verdicts={verdict: verdicts[verdict] for verdict in Verdict if verdicts[verdict]},
        loss=rate(lambda end: end.is_loss),
        corruption=rate(lambda end: end.is_corruption),
        harm=rate(lambda end: end.is_loss or end.is_corruption),
        broken=sum(count for kind, count in counts.items() if kind.broke_guarantee),
        empty=sum(count for kind, count in counts.items() if kind.is_empty),
        confirmations=sum(count for kind, count in counts.items() if kind.is_confirmation),
    )


def cell_figures(tallies: Sequence[CellTally]) -> tuple[CellFigures, ...]:
    """The figures of each cell, in the order of the tallies."""
    return tuple(_figures(tally) for tally in tallies)


def _figures(tally: CellTally) -> CellFigures:
    rates = cell_rates(
        tally.cell,
        guarantee=tally.guarantee,
        counts=tally.counts,
        is_sequential=tally.is_sequential,
    )
    return CellFigures(
        **{own.name: getattr(rates, own.name) for own in fields(rates)},
        axes=tally.axes,
        acknowledged_per_s=tally.acknowledged_per_s,
        rollback_ms=tally.rollback_ms,
        worth=tally.worth,
        checked=tally.checked,
        acknowledged_in_outage=tally.acknowledged_in_outage,
        surveys=tally.surveys,
    )
