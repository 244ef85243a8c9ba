"""The effect of an administration on a verdict, a plan and a report.

Files whose names may go back: each loss of a name is excused, and none of flushed content.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from suites.selftest.unit.administered import CELL, OPERATIONS, cut, outputs_of, with_pool
from suites.selftest.unit.good_evidence import (
    EVERYTHING,
    MIXED,
    OLD,
    begun,
    evidence,
    ledger,
    read,
    without,
)
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.administration.protocol import Moment
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import Confirmation
from torture.facts.evidence.folder import AdministrationDocument, Evidence, Step
from torture.facts.evidence.ledger import Cut, Done, Ledger, OperationKind
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import append_record
from torture.records.scoring.judge import judge
from torture.report.figures.tables import Administered, administered_cuts
from torture.report.page.render import render_page
from torture.report.reading.store import Store
from torture.trials.plan.trial_plan import (
    AdministrationCut,
    TrialPlan,
    draw_administration_cut,
    draw_plan,
)

UNDONE, GOING_ON, DONE = (f"expand-{outcome}" for outcome in ("undone", "going-on", "done"))


@pytest.mark.parametrize(
    ("state", "end", "outcome"),
    [(UNDONE, UNDONE, "undone"), (GOING_ON, DONE, "going on"), (DONE, DONE, "done")],
)
def test_done_undone_and_going_on_are_no_finding(state: str, end: str, outcome: str) -> None:
    judgement = judge(cut(outputs_of(state), end=outputs_of(end)))
    assert (judgement.verdict, judgement.administration) == (Verdict.INTACT, outcome)


def test_half_of_it_is_corruption_of_the_pool() -> None:
    half = with_pool(DONE, raidz_expand_stats=None)
    judgement = judge(cut(half, end=outputs_of(DONE)))
    assert (judgement.verdict, judgement.pool) == (Verdict.CORRUPTED, Verdict.CORRUPTED)
    assert judgement.administration == "half"
    assert "expand is half done after the cut" in judgement.reasons
    assert guarantee_of(Cell.parse(CELL)).is_broken_by(judgement.verdict, pool=judgement.pool)


def test_half_of_it_after_a_second_cut_is_seen_too() -> None:
    half = with_pool(DONE, raidz_expand_stats=None)
    judgement = judge(cut(outputs_of(GOING_ON), half, end=outputs_of(DONE)))
    assert (judgement.verdict, judgement.administration) == (Verdict.CORRUPTED, "going on")


def test_a_command_that_had_returned_must_not_be_undone() -> None:
    acknowledged = judge(cut(outputs_of(UNDONE), end=outputs_of(UNDONE), returned=0))
    assert (acknowledged.verdict, acknowledged.pool) == (Verdict.ROLLED_BACK, Verdict.ROLLED_BACK)
    assert "expand is undone, and had returned before the cut" in acknowledged.reasons
    for state in (GOING_ON, DONE):
        kept = judge(cut(outputs_of(state), end=outputs_of(DONE), returned=0))
        assert kept.verdict is Verdict.INTACT


@pytest.mark.parametrize(("before", "outcome"), [(GOING_ON, "going on"), (DONE, "done")])
def test_an_outcome_that_an_import_found_must_not_be_undone_by_a_second_cut(
    before: str, outcome: str
) -> None:
    judgement = judge(cut(outputs_of(before), outputs_of(UNDONE), end=outputs_of(UNDONE)))
    assert (judgement.verdict, judgement.pool) == (Verdict.ROLLED_BACK, Verdict.ROLLED_BACK)
    assert judgement.administration == outcome
    why = f"expand was {outcome} after the cut, and is undone after the next one"
    assert why in judgement.reasons


@pytest.mark.parametrize(
    ("before", "after"),
    [(UNDONE, UNDONE), (GOING_ON, GOING_ON), (GOING_ON, DONE), (DONE, DONE), (DONE, GOING_ON)],
)
def test_an_outcome_that_stays_or_goes_on_after_a_second_cut_is_sound(
    before: str, after: str
) -> None:
    """One that was seen done may go on: nothing showed that its last group was synced."""
    end = outputs_of(UNDONE if after == UNDONE else DONE)
    judgement = judge(cut(outputs_of(before), outputs_of(after), end=end))
    assert judgement.verdict is Verdict.INTACT


def test_an_earlier_cut_that_confirms_a_finding_may_have_come_before_the_return() -> None:
    drawn = cut(outputs_of(UNDONE), end=outputs_of(UNDONE), returned=0)
    earlier = Confirmation(finding="completed-is-durable at event 70", event=70, marks=5, t_ms=1.0)
    confirmed = replace(drawn, cut=structs.replace(drawn.cut, confirmed=earlier))
    judgement = judge(confirmed)
    assert (judgement.verdict, judgement.administration) == (Verdict.INTACT, "undone")
    unknown = judge(replace(drawn, is_cut_read=False))
    assert unknown.verdict is Verdict.INCONCLUSIVE, "it is unknown which cut was recovered"


@pytest.mark.parametrize(("state", "end"), [(GOING_ON, UNDONE), (UNDONE, DONE), (DONE, UNDONE)])
def test_an_operation_that_goes_on_must_end_and_others_must_not_change(
    state: str, end: str
) -> None:
    judgement = judge(cut(outputs_of(state), end=outputs_of(end)))
    assert judgement.verdict is Verdict.CORRUPTED
    assert any("after the cut, and is" in reason for reason in judgement.reasons)


def test_an_unreadable_answer_is_inconclusive_and_an_unasked_question_is_left_out() -> None:
    garbled = [replace(output, stdout="{") for output in outputs_of(DONE)]
    assert judge(cut(garbled)).verdict is Verdict.INCONCLUSIVE
    unasked = judge(cut())
    assert (unasked.verdict, unasked.administration) == (Verdict.INTACT, "")


def test_an_unreadable_administration_hides_no_loss_of_the_data() -> None:
    garbled = [replace(output, stdout="{") for output in outputs_of(DONE)]
    judgement = judge(read(cut(garbled), MIXED))
    assert (judgement.verdict, judgement.data) == (Verdict.CORRUPTED, Verdict.CORRUPTED)
    assert "at least" in judgement.reasons[0]


def test_a_finding_remains_when_the_rest_is_unknown() -> None:
    half = cut(with_pool(DONE, raidz_expand_stats=None))
    assert judge(without(half, Step.POOL_SCRUB)).verdict is Verdict.CORRUPTED


def spec_of(cell: str, seed: int) -> TrialSpec:
    return TrialSpec(cell=Cell.parse(cell), index=0, seed=seed, load_ms=4000)


def test_each_moment_is_drawn_as_often_and_nothing_else_is_drawn_otherwise() -> None:
    moments: Counter[Moment] = Counter()
    for seed in range(300):
        administered = draw_plan(spec_of(CELL, seed))
        plain = draw_plan(spec_of(CELL.replace("-expand", ""), seed))
        assert plain.administration is None
        assert administered.administration is not None
        moments[administered.administration.moment] += 1
        assert administered.cut == plain.cut
        kept = administered.survivors
        assert {serial: kept[serial] for serial in plain.survivors} == plain.survivors
        assert set(kept) - set(plain.survivors) == {"spare0"}
    assert all(70 < count < 130 for count in moments.values())


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_plan_is_within_the_bounds_of_its_operation_and_reads_back(name: str) -> None:
    operation = OPERATIONS[name]
    for seed in range(40):
        drawn = draw_administration_cut(operation, seed=seed)
        assert drawn is not None
        assert drawn == draw_administration_cut(operation, seed=seed)
        assert AdministrationCut.from_json(json.loads(json.dumps(drawn.as_json()))) == drawn
        assert any(
            (point.event, point.role, point.disk, point.is_after_end)
            == (drawn.event, drawn.role, drawn.disk, drawn.is_after_end)
            and point.least <= drawn.count <= point.most
            and 0 <= drawn.delay_ms <= point.delay_ms_max
            for point in operation.cut_points[drawn.moment]
        )


def test_a_whole_plan_reads_back_with_and_without_one() -> None:
    for cell in (CELL, CELL.replace("-expand", "")):
        plan = draw_plan(spec_of(cell, 3))
        assert TrialPlan.from_json(json.loads(json.dumps(plan.as_json()))) == plan
        assert ("administration" in plan.as_json()) is (cell == CELL)


def record_of(seed: int, *, outcome: str, verdict: Verdict = Verdict.INTACT) -> TrialRecord:
    (made,) = make_records(1, cells=[Cell.parse(CELL)], seed=seed)
    done = AdministrationDocument(name="expand", moment="start")
    return changed(
        made,
        verdict=verdict,
        verdicts={"pool": verdict},
        lost=0,
        administration=done,
        judgement=structs.replace(made.judgement, administration=outcome),
        error=None,
        machinery_failed=False,
    )


def test_a_record_keeps_it_and_one_without_says_nothing_of_it() -> None:
    record = record_of(1, outcome="going on")
    again = TrialRecord.from_json(json.loads(json.dumps(record.as_json())))
    assert again.administration == record.administration
    assert again.judgement.administration == "going on"
    plain = structs.replace(record, administration=None)
    assert "administration" not in plain.as_json()
    assert TrialRecord.from_json(plain.as_json()).administration is None


def test_the_page_counts_each_outcome_by_moment(tmp_path: Path) -> None:
    records = [record_of(seed, outcome="done") for seed in range(3)]
    records += [record_of(10, outcome="half", verdict=Verdict.CORRUPTED)]
    records += [record_of(11, outcome="", verdict=Verdict.POOL_LOST)]
    records += [record_of(12, outcome="", verdict=Verdict.INCONCLUSIVE)]
    late = AdministrationDocument(name="expand", moment="end", returned=0)
    records += [changed(record_of(13, outcome="undone"), administration=late)]
    records += make_records(5, cells=[Cell.parse("iscsi-standard-noslog-btrfs-bothdie")], seed=5)
    run = write_run(tmp_path / "run", [])
    for record in records:
        append_record(run / TRIALS_FILE, record)
    with Store.open([run]) as store:
        early, last = administered_cuts(store.sql)
        page = render_page(store)
    assert early == Administered("a raidz is expanded", "start", 6, 0, [3, 0, 0, 0, 1], 1, 1)
    assert last == Administered("a raidz is expanded", "end", 1, 1, [0, 1, 0, 0, 0], 0, 0)
    assert "Administration under the cut: 7 cuts" in page
    assert "<td>a raidz is expanded</td><td>end</td><td>1</td><td>1</td>" in page


def test_a_page_without_any_has_no_such_table(tmp_path: Path) -> None:
    with Store.open([write_run(tmp_path / "run", [])]) as store:
        assert administered_cuts(store.sql) == ()
        assert "Administration under the cut" not in render_page(store)


CELLS = ("smb-standard-noslog-files-bothdie", "ganesha-standard-plp-files-clientlater")


def of(cell: str, found: str, events: Ledger | None = None) -> Evidence:
    made = evidence(filesystem="raw", found=found, spec={"cell": cell, "seed": 1})
    return made if events is None else replace(made, ledger=events)


def breaks(cell: str, made: Evidence) -> bool:
    return guarantee_of(Cell.parse(cell)).is_broken_by(judge(made).verdict)


def with_a_last(kind: OperationKind, *, file: int) -> Ledger:
    """The usual ledger, with an acknowledged operation on a name at its end."""
    *before, _ = ledger().events
    blocks = () if kind is OperationKind.UNLINK else (0,)
    begin = begun(500.0, 7, kind, file=file, blocks=blocks)
    return Ledger(events=(*before, begin, Done(t_ms=510.0, seq=7), Cut(t_ms=520.0)))


@pytest.mark.parametrize("name", CELLS)
def test_content_that_was_flushed_and_is_gone_breaks_the_guarantee(name: str) -> None:
    assert not breaks(name, of(name, EVERYTHING))
    judgement = judge(of(name, OLD))
    assert judgement.verdict is Verdict.CORRUPTED
    assert judgement.findings.rollback_ms is None
    assert "no name that went back explains it" in judgement.reasons[0]
    assert breaks(name, of(name, OLD))
    assert breaks(name, of(name, MIXED))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("kind", [OperationKind.REPLACE, OperationKind.UNLINK])
def test_a_name_that_went_back_is_excused(name: str, kind: OperationKind) -> None:
    made = of(name, EVERYTHING, with_a_last(kind, file=1))
    assert judge(made).verdict is Verdict.ROLLED_BACK
    assert not breaks(name, made)


@pytest.mark.parametrize("name", CELLS)
def test_a_name_that_went_back_excuses_no_other_content(name: str) -> None:
    assert breaks(name, of(name, OLD, with_a_last(OperationKind.REPLACE, file=1)))


@pytest.mark.parametrize(
    "name", ["smb-standard-lost-files-bothdie", "smb-disabled-noslog-files-bothdie"]
)
def test_where_theory_lets_content_go_back_it_may(name: str) -> None:
    assert judge(of(name, OLD)).verdict is Verdict.ROLLED_BACK
    assert not breaks(name, of(name, OLD))
