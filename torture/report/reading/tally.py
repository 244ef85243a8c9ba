"""How many trials of a cell ended how: all that its rates hang on, counted and not yet computed with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord

_GUARANTEES = {str(guarantee): guarantee for guarantee in Guarantee}


class TrialKind(NamedTuple):
    """What a trial is counted as."""

    verdict: Verdict
    is_loss: bool
    """Whether something acknowledged is not there, whatever the verdict."""
    broke_guarantee: bool
    is_empty: bool = False
    """Whether it is inconclusive for its cut, which could have taken nothing."""
    is_confirmation: bool = False
    """Whether it was cut at the moment of a finding, the worst there was: no draw, and in no rate."""


class Audited(NamedTuple):
    """What was audited, and how often an invariant was broken."""

    acknowledgements: int
    completions: int
    """Writes that the client's disk promised to be durable."""
    txgs: int
    broken: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """What several trials gave."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """What a cell was worth: medians over its conclusive trials that tell; None where none does.

    As in `torture.records.record.worth`.
    """

    durable_per_s: float | None = None
    sync_p50_ms: float | None = None
    sync_p99_ms: float | None = None
    outage_ms: float | None = None
    reconnect_ms: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is anything to show."""
        return any(getattr(self, name) is not None for name in WORTH)


WORTH = tuple(Worth.__dataclass_fields__)
"""The names of its figures, which are columns of the tables as well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellTally:
    """What the live trials of a cell gave."""

    cell: str
    axes: dict[str, str]
    """Of a name that this version does not know: as the records have them."""
    guarantee: str
    """Today's; the last record's for a name that this version does not know."""
    counts: Mapping[TrialKind, int]
    is_sequential: bool
    """Whether one of their runs stopped when its question was answered."""
    acknowledged_per_s: float | None
    """Durable operations a second from the load's start to the cut, the median over conclusive trials."""
    rollback_ms: Spread | None
    """Over those conclusive trials that rolled back."""
    worth: Worth = field(default_factory=Worth)
    acknowledged_in_outage: int = 0
    """Operations of all its trials that were acknowledged while there was no NAS."""


def kind_of(record: TrialRecord, guarantee: str) -> TrialKind:
    """What a record is counted as where its cell has this guarantee, by its text."""
    known = guarantee_in(guarantee)
    return TrialKind(
        verdict=record.verdict,
        is_loss=record.is_loss,
        broke_guarantee=known is not None and record.breaks(known),
        is_empty=not record.is_conclusive and record.cut.is_empty,
        is_confirmation=record.is_conclusive and record.cut.confirmed.is_made,
    )


def guarantee_in(text: str) -> Guarantee | None:
    """A guarantee by its text; None for a text that is none."""
    return _GUARANTEES.get(text)
