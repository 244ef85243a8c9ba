"""A load that stalls: a cut after it could have lost nothing, and is reported as empty."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import evidence
from suites.selftest.unit.made_records import trial_record
from torture.choices.experiments import FAULTS
from torture.choices.experiments.protocol import Sight
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, DiskAtCut
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import TrialRecord, needing_attention
from torture.records.scoring.detection import detect, seen_by
from torture.records.scoring.judge import judge
from torture.trials.plan.draw import draw_planted

FAULT = FAULTS["load-stalled"]


def cut(aim: str, *, lately: int = 0, unflushed: int = 0) -> CutDocument:
    return CutDocument(
        plan={"aim": aim},
        hit=True,
        audit=AuditDocument(under_way=3, acknowledged_lately=lately),
        disks={"data0": DiskAtCut(unflushed=unflushed)},
    )


@pytest.mark.parametrize("aim", ["anywhere", "zil-completed"])
def test_a_load_that_stalled_amid_an_operation_is_silence(aim: str) -> None:
    """Its last acknowledgement is old, and no disk has anything to lose."""
    silent = cut(aim)
    assert (silent.is_stalled, silent.is_at_risk, silent.is_empty) == (True, False, True)
    stalled = judge(replace(evidence(), cut=silent))
    assert stalled.verdict is Verdict.INCONCLUSIVE
    assert stalled.reasons[0].endswith("the load had stalled")


@pytest.mark.parametrize("working", [cut("anywhere", lately=1), cut("anywhere", unflushed=1)])
def test_a_load_that_is_slow_or_has_something_to_lose_is_at_work(working: CutDocument) -> None:
    assert (working.is_stalled, working.is_at_risk, working.is_empty) == (False, True, False)


def record(verdict: Verdict, how: CutDocument) -> TrialRecord:
    axes = Cell.parse(FAULT.cell).axes
    return trial_record(
        trial="t", cell=FAULT.cell, axes=axes, seed=1, verdict=verdict, guarantee=Guarantee.SAFE,
        fault=FAULT.name, cut=how,
    )  # fmt: skip


def test_an_empty_cut_is_how_a_stalled_load_is_seen() -> None:
    empty = record(Verdict.INCONCLUSIVE, cut("anywhere"))
    intact = record(Verdict.INTACT, cut("anywhere", lately=1))
    assert seen_by(empty) == {Sight.EMPTY}
    assert seen_by(intact) == frozenset()
    detection = detect(FAULT, [empty, empty, intact])
    assert (detection.detected, detection.by[Sight.EMPTY]) == (2, 2)
    assert detection.is_as_predicted


def test_an_empty_cut_sees_no_other_fault() -> None:
    empty = record(Verdict.INCONCLUSIVE, cut("anywhere"))
    seen = record(Verdict.CORRUPTED, cut("anywhere", lately=1))
    detection = detect(FAULTS["flush-dropped"], [seen, empty, empty, empty])
    assert (detection.detected, detection.cuts, detection.inconclusive) == (1, 4, 3)


def test_a_stalled_load_is_looked_at_beside_conclusive_ones() -> None:
    intact = record(Verdict.INTACT, cut("anywhere", lately=1))
    stalled = record(Verdict.INCONCLUSIVE, cut("anywhere"))
    idle = structs.replace(
        stalled,
        cut=structs.replace(stalled.cut, audit=AuditDocument(under_way=0, acknowledged_lately=0)),
    )
    assert needing_attention([intact, stalled, idle]) == [stalled]


def test_a_fault_may_have_a_load_of_its_own_length() -> None:
    [spec] = draw_planted([FAULT], trials=1, run_seed=1, load_ms=4000)
    assert spec.load_ms == FAULT.load_ms == 20_000
    [usual] = draw_planted([FAULTS["flush-dropped"]], trials=1, run_seed=1, load_ms=4000)
    assert usual.load_ms == 4000
