"""The plan of a night: its trials, and whose are missing."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import usual_cell
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report.night_plans import CELLS, SEED, TRIALS, names_of, plan_of
from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.specs import TrialSpec, drawn_again
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule
from torture.report.night.plan import Plan, seed_of_night
from torture.trials.plan.draw import draw_trials


def test_a_plan_has_the_very_trials_that_a_run_draws() -> None:
    found = names_of(CELLS, trials=TRIALS, seed=SEED)
    assert plan_of(4).gaps(found) == ()
    assert plan_of(4).unplanned(found) == 0
    assert plan_of(4).unplanned(names_of(CELLS, trials=TRIALS, seed=SEED + 1)) == len(found)


def test_a_trial_that_follows_an_empty_cut_is_no_stranger() -> None:
    """As the schedule draws it, three times at most."""
    plan = plan_of(4)
    specs = draw_trials(CELLS, trials=TRIALS, run_seed=SEED, load_ms=4000)
    schedule = FixedSchedule(specs)
    ran = []
    while (spec := schedule.next_spec()) is not None:
        ran.append(spec.trial)
        schedule.record_ended(spec, empty_cut_of(spec))
    assert len(ran) == 4 * len(specs)
    assert plan.unplanned(ran) == 0
    fourth = drawn_again(drawn_again(drawn_again(drawn_again(specs[0]))))
    assert plan.unplanned([fourth.trial]) == 1


def empty_cut_of(spec: TrialSpec) -> TrialRecord:
    cut = CutDocument(audit=AuditDocument(under_way=0, acknowledged_lately=0))
    [record] = make_records(1, cells=[spec.cell], seed=1)
    return changed(record, verdict=Verdict.INCONCLUSIVE, cut=cut)


@given(
    cells=st.lists(usual_cell(), min_size=1, max_size=20, unique=True),
    shards=st.integers(1, 25),
    data=st.data(),
)
def test_a_shard_whose_trials_are_missing_is_named(
    cells: list[Cell], shards: int, data: st.DataObject
) -> None:
    plan = Plan(cells=tuple(cells), shards=shards, trials=2, seed=1)
    lost = data.draw(st.sets(st.sampled_from(plan.all_shards)))
    came = [
        cell for shard in plan.all_shards if shard not in lost for cell in shard.share_of(cells)
    ]
    gaps = plan.gaps(names_of(came, trials=2, seed=1))
    assert {gap.shard for gap in gaps} == lost
    assert all(gap.missing == gap.trials == 2 * len(gap.cells) for gap in gaps)
    assert all("is missing" in str(gap) for gap in gaps)


def test_a_shard_that_was_stopped_is_not_complete() -> None:
    found = names_of(CELLS, trials=TRIALS, seed=SEED)
    lost = sorted(found)[0]
    [gap] = plan_of(3).gaps(found - {lost})
    assert (gap.missing, gap.trials) == (1, 4 * TRIALS)
    assert gap.cells == (lost.split(".")[0],)
    assert "not complete: 1 of its 32 trials" in str(gap)


def test_another_night_has_another_seed() -> None:
    assert seed_of_night(date(2026, 7, 29)) == 20260729
    assert seed_of_night(date(2026, 8, 1)) != seed_of_night(date(2026, 7, 31))
