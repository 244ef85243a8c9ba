"""A trial cannot be redrawn: the first conclusive record counts, and a breach is never excused."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple

import pytest

from suites.selftest.unit.made_records import changed, trial_record
from torture.facts.evidence.cut_document import AuditDocument
from torture.facts.stats.rates import rate_of
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.counting import the_one_that_counts
from torture.records.record.trials import TrialRecord

CELL = "iscsi-standard-noslog-ext4-nasonly"
CAMPAIGNS = 400
TRIALS = 40
RATE = 0.2


class Made(NamedTuple):
    """A try, as the rule sees it."""

    is_conclusive: bool
    is_breach: bool = False
    is_loss: bool = False


FAILED, FAILED_AUDIT = Made(False), Made(False, True)
INTACT, LOSS, BREACH = Made(True), Made(True, is_loss=True), Made(True, True, True)


@pytest.mark.parametrize(
    ("tries", "place"),
    [
        ([INTACT, LOSS], 0),
        ([LOSS, INTACT], 0),
        ([FAILED, LOSS, INTACT], 1),
        ([INTACT, FAILED], 0),
        ([FAILED, FAILED], 1),
        ([BREACH, INTACT], 0),
        ([INTACT, LOSS, BREACH, INTACT], 2),
        ([FAILED_AUDIT, INTACT], 0),
        ([INTACT, FAILED_AUDIT], 1),
        ([FAILED_AUDIT, BREACH], 1),
        ([BREACH, BREACH], 0),
    ],
)
def test_the_record_that_counts(tries: list[Made], place: int) -> None:
    own = [Made(*made) for made in tries]
    assert the_one_that_counts(own) is own[place]


def test_of_no_record_none_counts() -> None:
    with pytest.raises(IndexError):
        the_one_that_counts(())


def test_a_campaign_whose_losses_are_drawn_again_is_covered_by_its_interval() -> None:
    """The last record would cover the rate in one campaign of five."""

    def covered(draw: random.Random, *, is_last: bool) -> bool:
        events = 0
        for _ in range(TRIALS):
            tries = [LOSS if draw.random() < RATE else INTACT]
            if tries[0].is_loss:
                tries.append(LOSS if draw.random() < RATE else INTACT)
            events += (tries[-1] if is_last else the_one_that_counts(tries)).is_loss
        rate = rate_of(events, TRIALS)
        return rate.low <= RATE <= rate.high

    first, last = (
        sum(covered(random.Random(seed), is_last=is_last) for seed in range(CAMPAIGNS)) / CAMPAIGNS
        for is_last in (False, True)
    )
    assert first >= 0.93
    assert last < 0.3


def test_a_records_own_breach_has_its_loss_and_its_audit() -> None:
    sound = record(Verdict.INTACT)
    lost = changed(record(Verdict.ROLLED_BACK), lost=3)
    audit = AuditDocument(broken=1, under_way=1)
    failed = record(Verdict.INCONCLUSIVE)
    accused = changed(failed, cut=replace(failed.cut, audit=audit))
    assert [own.is_breach for own in (sound, lost, failed, accused)] == [False, True, False, True]
    assert not replace(lost, guarantee="a word of another version").is_breach
    assert the_one_that_counts([sound, lost]) is lost
    assert the_one_that_counts([accused, sound]) is accused


def record(verdict: Verdict) -> TrialRecord:
    return trial_record(
        trial=f"{CELL}.0000-0123456789abcdef", cell=CELL, verdict=verdict, guarantee=Guarantee.SAFE
    )
