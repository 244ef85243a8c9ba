"""Counts of a cell's trials by outcome: the input of its rates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from torture.discovery import offered_by_features
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import TrialRecord

Rows = Callable[[str], Sequence[Sequence[Any]]]
"""Asks the store a question in SQL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey(ABC):
    """The conclusive surveys of one kind of a cell."""

    kind: str
    """The name of its `SurveyKind`."""
    recordings: int
    units: int
    """The surveyed units, e.g. crash states."""
    lost: int
    """Of these, those that lost something acknowledged, or are damaged."""
    recordings_lost: int
    """The recordings with one of these."""
    broken: int = 0
    """The recordings that are worse than guaranteed."""
    inconclusive: int = 0
    """Further recordings, whose surveys say nothing."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]:
        """The columns of exports: those of its kind."""

    @property
    @abstractmethod
    def loss_in_words(self) -> str:
        """E.g. `2 of 1,680 crash states`."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """The whole finding, with the interval of the recordings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SurveyKind:
    """One kind of survey."""

    name: str
    """Also of the view that has its records (`torture.report.reading.counting_rules`)."""
    origin: str
    """Of its records."""
    title: str
    """Of its column in tables: the units, and that they are lost."""
    legend: str
    """The meaning of this column."""
    columns: tuple[str, ...]
    """Of exports; a cell without a survey has 0 in each."""
    by_cell: Callable[[Rows], Mapping[str, Survey]]
    notes: Callable[[Rows], tuple[str, ...]]
    """Sentences about anything unusual in the records."""
    together: Callable[[Mapping[str, int]], str]
    """The sums of these columns in words; empty where there is nothing to say."""


@cache
def survey_kinds() -> tuple[SurveyKind, ...]:
    """Every kind."""
    return offered_by_features("surveys", "SURVEY")


def surveys_of(rows: Rows) -> dict[str, tuple[Survey, ...]]:
    """The surveys of all cells that have one."""
    found: dict[str, tuple[Survey, ...]] = {}
    for kind in survey_kinds():
        for cell, survey in kind.by_cell(rows).items():
            found[cell] = (*found.get(cell, ()), survey)
    return found


_GUARANTEES = {str(guarantee): guarantee for guarantee in Guarantee}


class FirstTry(NamedTuple):
    """The first conclusive try of a trial of which a later try counts, for its breach."""

    is_loss: bool
    is_corruption: bool


class TrialKind(NamedTuple):
    """The kind under which a trial is counted."""

    verdict: Verdict
    is_loss: bool
    """Whether acknowledged data is missing, whatever the verdict."""
    broke_guarantee: bool
    is_empty: bool = False
    """Whether it is inconclusive since its cut had nothing to lose."""
    is_confirmation: bool = False
    """Whether it was cut at the worst finding's moment: not drawn, so not counted in rates."""
    first: FirstTry | None = None
    """Its first conclusive try, if a later one counts."""


class Audited(NamedTuple):
    """The number of audited promises, and how often an invariant was broken."""

    acknowledgements: int
    completions: int
    """Writes that the client's disk promised as durable."""
    txgs: int
    broken: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The spread of a value over several trials."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """A cell's worth: medians over its conclusive trials with a measurement; None without one.

    As in `torture.records.record.trials`.
    """

    durable_per_s: float | None = None
    sync_p50_ms: float | None = None
    sync_p99_ms: float | None = None
    outage_ms: float | None = None
    reconnect_ms: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether any figure is known."""
        return any(getattr(self, name) is not None for name in WORTH)


WORTH = tuple(Worth.__dataclass_fields__)
"""The names of its figures, which are also columns of the tables."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellTally:
    """The counts and medians of a cell's live trials, and its surveys; some cells have only these."""

    cell: str
    axes: dict[str, str]
    """The records' axes for a name that this version does not know."""
    guarantee: str
    """Today's guarantee; the last record's for a name that this version does not know."""
    counts: Mapping[TrialKind, int]
    is_sequential: bool
    """Whether one of their runs stopped when its question was answered."""
    acknowledged_per_s: float | None
    """Durable operations per second from the load's start to the cut: median over conclusive trials."""
    rollback_ms: Spread | None
    """The spread over conclusive trials that rolled back."""
    worth: Worth = field(default_factory=Worth)
    checked: int = 0
    """Acknowledged operations that were looked for afterwards, in all trials that its rates count."""
    acknowledged_in_outage: int = 0
    """Operations acknowledged while there was no NAS, in all its trials."""
    surveys: tuple[Survey, ...] = ()


def kind_of(record: TrialRecord, guarantee: str) -> TrialKind:
    """The kind of a record if its cell has this guarantee, given by its text."""
    known = guarantee_in(guarantee)
    is_conclusive = record.is_conclusive
    return TrialKind(
        verdict=record.verdict,
        is_loss=record.is_loss,
        broke_guarantee=known is not None and record.breaks(known),
        is_empty=not is_conclusive and record.cut.is_empty,
        is_confirmation=is_conclusive and record.cut.confirmed.is_made,
    )


def guarantee_in(text: str) -> Guarantee | None:
    """A guarantee by its text; None for an unknown text."""
    return _GUARANTEES.get(text)
