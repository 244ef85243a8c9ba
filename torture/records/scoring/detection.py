"""Whether a planted fault was seen, by which check, and after how many cuts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torture.choices.faults.protocol import Fault, Sight
from torture.facts.stats.rates import Rate, interval_in_words, rate_of
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.records.scoring.lower_bound import is_lie_at_risk

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Detection:
    """The results of a fault's trials; `inconclusive` ones are among those that did not see it."""

    fault: str
    layer: str
    words: str
    cell: str
    bound_to: tuple[str, ...]
    amounts_to: dict[str, str]
    """The cells in which it is the same fault, as `torture.choices.faults.protocol.Fault` has both."""
    cuts: int
    detected: int
    by: dict[Sight, int]
    """For each check, the number of trials in which it found something."""
    inconclusive: int
    confirmed: int
    """The number of trials in which a cut of its own confirmed a finding of the audit."""
    confirmed_lost: int
    """Of these, the trials that then lost something: a check other than the audit found something."""
    without_risk: int
    """The number of further cuts that saw nothing, as the fault had nothing acknowledged to take."""
    predicted_by: Sight
    predicted_cuts: int

    @property
    def rate(self) -> Rate:
        """The rate of cuts that saw it, with its interval."""
        return rate_of(self.detected, self.cuts)

    @property
    def is_as_predicted(self) -> bool:
        """Whether the predicted check saw it, and at least the predicted number of cuts can be needed."""
        return self.by[self.predicted_by] > 0 and self.rate.high >= share_for(self.predicted_cuts)

    @property
    def rate_in_words(self) -> str:
        """E.g. `5 of 5 [47-100 %]`."""
        return f"{self.detected} of {self.cuts} [{interval_in_words(self.rate)}]"

    def as_json(self) -> dict[str, Any]:
        """The detection as plain data, with the interval."""
        return asdict(self) | {"low": self.rate.low, "high": self.rate.high}


def detect(fault: Fault, records: Sequence[TrialRecord]) -> Detection:
    """Count a fault's trials. A trial saw it if it breaks its cell's guarantee.

    So did one that says that a setting is not in effect. An empty cut sees only a fault that
    empties cuts: a load that stalls.

    Raises `ValueError` for a disturbance, which has nothing to see.
    """
    if fault.seen_by is None:
        raise ValueError(f"{fault.name} is harmless")
    all_cuts = len(records)
    records = [one for one in records if seen_by(one) or is_lie_at_risk(one) is not False]
    sights = [seen_by(record) for record in records]
    confirmed = [
        seen for seen, record in zip(sights, records, strict=True) if record.cut.confirmed.is_made
    ]
    return Detection(
        fault=fault.name,
        layer=fault.layer,
        words=fault.words,
        cell=fault.cell,
        bound_to=tuple(sorted(fault.bound_to)),
        amounts_to=dict(fault.amounts_to),
        cuts=len(records),
        detected=sum(
            record.breaks(Guarantee(record.guarantee))
            or Sight.SETTINGS in seen
            or (fault.seen_by is Sight.EMPTY and Sight.EMPTY in seen)
            for seen, record in zip(sights, records, strict=True)
        ),
        by={sight: sum(sight in seen for seen in sights) for sight in Sight},
        inconclusive=sum(not record.is_conclusive for record in records),
        confirmed=len(confirmed),
        confirmed_lost=sum(bool(seen - {Sight.AUDIT}) for seen in confirmed),
        without_risk=all_cuts - len(records),
        predicted_by=fault.seen_by,
        predicted_cuts=fault.cuts,
    )


def seen_by(record: TrialRecord) -> frozenset[Sight]:
    """The checks that found something against a trial."""
    said = {Sight.AUDIT} if record.cut.audited.is_broken else set()
    said |= {
        sight
        for sight in (Sight.POOL, Sight.FILESYSTEM, Sight.DATA)
        if record.judgement.parts[sight] not in (None, Verdict.INTACT)
    }
    if record.absence.unfounded:
        said.add(Sight.OUTAGE)
    if record.walk is not None and record.walk.states_lost:
        said.add(Sight.REPLAY)
    if record.cut.not_in_effect:
        said.add(Sight.SETTINGS)
    if record.cut.is_empty and record.cut.is_stalled and not record.is_conclusive:
        said.add(Sight.EMPTY)
    return frozenset(said)


def cuts_for(share: float) -> int | None:
    """The number of cuts for 95 % confidence, if a cut sees it with this share; None: never."""
    if share <= 0:
        return None
    return 1 if share >= 1 else math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - share))


def cuts_in_words(rate: Rate) -> str:
    """The number of cuts for 95 % confidence, if they see it at this rate: e.g. `1-9`."""
    least, most = cuts_for(rate.high), cuts_for(rate.low)
    return f"{least}-{most}" if most is not None else f"{least} or more"


def share_for(cuts: int) -> float:
    """The share of cuts that must see something for this number of cuts to suffice."""
    return float(1 - (1 - CONFIDENCE) ** (1 / cuts))
