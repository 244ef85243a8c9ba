"""A night: its trials and whose are missing, its baseline, and the evidence that it keeps."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import usual_cell
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.night.night_plans import CELLS, SEED, TRIALS, names_of, plan_of
from suites.selftest.unit.report import test_report_unresolved as origins
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.features.night.merge import (
    BEFORE,
    Remember,
    merge_night,
    move_baseline,
    night_before,
    read_night,
    trim_evidence,
    warning_of_age,
)
from torture.features.night.plan import Plan, seed_of_night
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.specs import TrialSpec, drawn_again
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.records.schedules.fixed import FixedSchedule
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


# The baseline of a night: never the same night, never a later one, and it moves only forward.

BASELINE_CELLS = [Cell.parse("iscsi-always-noslog-ext4-bothdie")]


def night(tmp_path: Path, day: int, *, name: str = "", trials: int = 6) -> Path:
    """The merged run of a day, whose seed is the day."""
    return write_run(
        tmp_path / (name or f"day-{day}"),
        make_records(trials, cells=BASELINE_CELLS, seed=day),
        begun=f"2026-11-{day:02}T01:23:00+0000",
    )


def test_the_first_night_has_no_baseline(tmp_path: Path) -> None:
    last = tmp_path / "last"
    monday = night(tmp_path, 2)
    assert night_before(monday, last) is None
    assert move_baseline(monday, last)
    assert night_before(monday, last) is None, "not itself"


def test_the_newest_other_night_is_the_baseline_however_often_one_merges(tmp_path: Path) -> None:
    last = tmp_path / "last"
    for day in (2, 3, 4):
        tonight = night(tmp_path, day)
        for merge in range(3):
            baseline = night_before(tonight, last)
            if day > 2:
                assert baseline is not None
                assert read_night(baseline).is_same(read_night(tmp_path / f"day-{day - 1}")), merge
            assert move_baseline(tonight, last)
    assert not (last / BEFORE / BEFORE).exists(), "two nights at most"


def test_a_merge_with_fewer_trials_is_the_same_night(tmp_path: Path) -> None:
    last = tmp_path / "last"
    move_baseline(night(tmp_path, 2), last)
    assert night_before(night(tmp_path, 2, name="half", trials=3), last) is None


def test_an_older_night_moves_no_baseline_and_meets_none_that_is_later(tmp_path: Path) -> None:
    last = tmp_path / "last"
    monday, tuesday, wednesday = (night(tmp_path, day) for day in (2, 3, 4))
    move_baseline(tuesday, last)
    move_baseline(wednesday, last)
    assert not move_baseline(monday, last)
    assert night_before(monday, last) is None
    assert night_before(tuesday, last) is None
    assert read_night(last).is_same(read_night(wednesday))


def test_a_baseline_that_cannot_be_read_is_an_error_and_is_replaced(tmp_path: Path) -> None:
    last, monday = tmp_path / "last", night(tmp_path, 2)
    last.mkdir()
    (last / "rubbish").write_text("x")
    with pytest.raises(HarnessError):
        night_before(monday, last)
    assert move_baseline(monday, last)
    assert not (last / "rubbish").exists()


# A shard keeps the evidence of its worst trials; the age of the newest night is known.

SAFE = Cell.parse("iscsi-always-noslog-ext4-bothdie")
LOSES = Cell.parse("iscsi-standard-noslog-ext4-nasonly")
NOW = datetime(2026, 11, 25, 1, 30, tzinfo=UTC)


def evidence(run: Path, trial: str, size: int) -> Path:
    folder = run / "trials" / trial / "nas"
    folder.mkdir(parents=True)
    (folder / "recordings.zip").write_bytes(b"x" * size)
    return folder.parent


def test_the_worst_evidence_stays_and_all_records_do(tmp_path: Path) -> None:
    safe, other = make_records(2, cells=[SAFE], seed=1)
    allowed, worse = make_records(2, cells=[LOSES], seed=1)
    records = [
        changed(safe, verdict=Verdict.ROLLED_BACK, lost=1),
        changed(other, verdict=Verdict.INCONCLUSIVE),
        changed(allowed, verdict=Verdict.ROLLED_BACK, lost=1),
        changed(worse, verdict=Verdict.CORRUPTED, lost=1),
    ]
    run = write_run(tmp_path / "night" / "run", records)
    before = (run / "trials.jsonl").read_bytes()
    breach, silent, back, corrupt = [evidence(run, record.trial, 100) for record in records]
    unknown = evidence(run, "no record", 100)
    (tmp_path / "night" / "latest").symlink_to("run")
    kept = trim_evidence(tmp_path / "night", bytes_max=300)
    assert (kept.trials, kept.size_bytes, kept.removed) == (3, 300, 2)
    assert all(folder.is_dir() for folder in (breach, corrupt, back))
    assert not silent.exists()
    assert not unknown.exists()
    assert (run / "trials.jsonl").read_bytes() == before
    assert "evidence of 3 trials" in str(kept)


def test_a_folder_that_is_too_large_makes_room_for_others(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records := list(make_records(2, cells=[SAFE], seed=1)))
    large = evidence(run, records[0].trial, 1000)
    small = evidence(run, records[1].trial, 10)
    assert trim_evidence(tmp_path, bytes_max=100).removed == 1
    assert (large.exists(), small.exists()) == (False, True)


def test_a_shard_without_a_run_has_no_evidence(tmp_path: Path) -> None:
    assert trim_evidence(tmp_path / "none", bytes_max=1).trials == 0


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("2026-11-24T01:23:00+0000", ""),
        ("2026-11-23T01:23:00+0000", "began on 2026-11-23, over 2 days ago"),
        ("", "has no date"),
    ],
)
def test_an_old_night_is_noticed(begun: str, expected: str, tmp_path: Path) -> None:
    last = write_run(tmp_path / "last", make_records(2, cells=[SAFE], seed=1), begun=begun)
    warning = warning_of_age(last, now=NOW, days=2)
    assert expected in warning
    assert bool(warning) == bool(expected)


def test_no_night_at_all_is_noticed(tmp_path: Path) -> None:
    assert "no sound night is remembered" in warning_of_age(tmp_path / "x", now=NOW, days=2)


# A night counts as the page does: no replay stands for a cut, and walks alone have an alarm.


def test_a_replay_does_not_stand_for_a_trial_that_a_night_still_owes(tmp_path: Path) -> None:
    plan = Plan(cells=origins.CELLS, shards=2, trials=1, seed=5)
    file = origins.replay_run(tmp_path, "later", origins.REPLAYED) / TRIALS_FILE
    found = [record.trial for record in read_records(file).live]
    assert sum(gap.missing for gap in plan.gaps(found)) == len(origins.CELLS)


def test_a_night_of_walks_alone_has_its_alarm(tmp_path: Path) -> None:
    pytest.importorskip("torture.features.walk")
    from suites.selftest.unit.walk.test_report_counted import walk

    write_run(tmp_path / "shards" / "one", [walk(lost=7), walk(seed=2)])
    night = merge_night(
        artifacts=tmp_path / "shards",
        plan=None,
        last=tmp_path / "last",
        site=tmp_path / "site",
        remember=Remember.NONE,
    )
    assert any("1 trial was worse than theory guarantees" in one for one in night.complaints)
    assert not any("No conclusive trial" in one for one in night.complaints)
