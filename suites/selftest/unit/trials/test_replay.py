"""A trial again, over a worker without machines; the first trial stays, with another name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from suites.selftest.unit.fake_workers import FakeSite, record_of
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import SPEC, write_document
from torture.facts.zfs.versions import DEFAULT
from torture.machines.lab.lab import LabSettings
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import LATEST, RUN_FILE
from torture.records.record.specs import DRAWS, TrialSpec
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import append_record, read_records
from torture.records.schedules.fixed import repeat
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.store import Store
from torture.trials.campaign.run import Run
from torture.trials.plan.draw import draw_trials
from torture.trials.plan.trial_plan import draw_plan, plan_of
from torture.trials.replay.replay import replay, spec_of_record
from torture.trials.workers.protocol import WorkerOrders

[FIRST] = draw_trials(
    [Cell.parse("iscsi-always-lying-btrfs-bothdie")], trials=1, run_seed=1, load_ms=500
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run whose trial rolled back, and which is the latest."""
    run = Run.begin(
        results=tmp_path / "results",
        seed=1,
        lab=LabSettings(warm_states=tmp_path),
        options={"jobs": 1},
    )
    append_record(run.trials_file, record_of(FIRST, "L"))
    evidence_of(run, FIRST)
    return run


def evidence_of(run: Run, spec: TrialSpec) -> Path:
    folder = run.evidence / spec.trial
    folder.mkdir()
    write_document(folder, SPEC, spec.as_json())
    return folder


def again(
    evidence: Path, *, live: bool = False, outcome: str = "C"
) -> tuple[TrialRecord, Path, TrialSpec]:
    """Replay over a worker whose trial ends so; also returns the worker's orders."""
    site = FakeSite(outcome=lambda _spec: outcome)
    results = evidence.parents[2]
    record, folder = replay(evidence, results=results, live=live, site_of=lambda _orders: site)
    [spec] = site.begun
    return record, folder, spec


@pytest.mark.parametrize(("live", "origin"), [(False, Origin.REPLAY), (True, Origin.RERUN)])
def test_a_replay_is_the_same_trial_under_a_name_of_its_own(
    run: Run, live: bool, origin: Origin
) -> None:
    evidence = run.evidence / FIRST.trial
    record, folder, spec = again(evidence, live=live)
    assert (record.origin, record.trial) == (origin, f"{FIRST.trial}.{origin}")
    assert (folder.name, folder.parents[1].parent) == (record.trial, run.folder.parent)
    assert folder.parents[1] != run.folder
    assert (spec.seed, spec.cell, spec.index) == (FIRST.seed, FIRST.cell, FIRST.index)
    assert (spec.replay_of, spec.repeats) == (str(evidence), FIRST.trial)
    [written] = read_records(folder.parents[1] / "trials.jsonl").records
    assert written == record


@pytest.mark.parametrize("live", [False, True])
def test_the_latest_run_is_still_the_one_it_was(run: Run, live: bool) -> None:
    latest = run.folder.parent / LATEST
    before = latest.readlink()
    again(run.evidence / FIRST.trial, live=live)
    assert latest.readlink() == before == Path(run.folder.name)


def test_a_report_over_both_leaves_the_first_its_verdict(run: Run) -> None:
    """The replay comes later and says something else: as a duplicate it would be the one that counts."""
    with Store.open([run.folder]) as store:
        figures = cell_figures(store.tallies())
    _, folder, _ = again(run.evidence / FIRST.trial, outcome="C")
    with Store.open([run.folder, folder.parents[1]]) as store:
        assert cell_figures(store.tallies()) == figures
        assert store.notes[-1:] == (
            "1 replay left out of all rates and cases: 0 ended as the trial that was repeated, "
            f"1 otherwise ({FIRST.trial}.replay: corrupted, was rolled-back)",
        )
        found = dict(store.sql.execute("SELECT trial, verdict FROM trials").fetchall())
    assert found == {
        FIRST.trial: Verdict.ROLLED_BACK,
        f"{FIRST.trial}.replay": Verdict.CORRUPTED,
    }


def test_a_replay_has_no_recording_and_says_who_has(run: Run) -> None:
    evidence = run.evidence / FIRST.trial
    _, folder, spec = again(evidence)
    folder.mkdir(exist_ok=True)
    write_document(folder, SPEC, spec.as_json())
    with pytest.raises(HarnessError, match="is a replay itself") as error:
        again(folder)
    assert error.value.hint == f"tools/replay {evidence}"


def test_a_rerun_has_a_recording_of_its_own(run: Run) -> None:
    _, folder, spec = again(run.evidence / FIRST.trial, live=True)
    folder.mkdir(exist_ok=True)
    write_document(folder, SPEC, spec.as_json())
    record, _, replayed = again(folder)
    assert record.trial == f"{FIRST.trial}.rerun.replay"
    assert replayed.replay_of == str(folder)


@pytest.mark.parametrize("origin", [Origin.REPLAY, Origin.RERUN])
def test_a_repeated_trial_has_the_plan_of_the_first_although_its_seed_draws_another(
    run: Run, origin: Origin
) -> None:
    other = draw_plan(replace(FIRST, seed=FIRST.seed + 1))
    assert other != draw_plan(FIRST)
    evidence = run.evidence / FIRST.trial
    write_document(evidence, SPEC, FIRST.as_json() | {"plan": other.as_json()})
    assert plan_of(repeat(FIRST, evidence=evidence, origin=origin)) == other
    assert plan_of(FIRST) == draw_plan(FIRST)


def test_a_repeated_trial_whose_plan_was_not_kept_has_the_one_of_its_seed(run: Run) -> None:
    repeated = repeat(FIRST, evidence=run.evidence / FIRST.trial, origin=Origin.RERUN)
    assert plan_of(repeated) == draw_plan(FIRST)


@pytest.mark.parametrize("plan", [7, {}, {"cut": {"aim": "moon"}}, {"cut": {}, "survivors": []}])
def test_a_plan_of_another_version_is_refused_before_anything_begins(
    run: Run, plan: object
) -> None:
    write_document(run.evidence / FIRST.trial, SPEC, FIRST.as_json() | {"plan": plan})
    with pytest.raises(HarnessError, match="is of another version"):
        again(run.evidence / FIRST.trial)
    assert {path.name for path in run.folder.parent.iterdir()} == {run.folder.name, LATEST}


def test_a_folder_that_holds_no_trial_is_refused_before_anything_begins(run: Run) -> None:
    (run.evidence / FIRST.trial / SPEC).write_text(json.dumps({"cell": FIRST.cell.name}))
    with pytest.raises(HarnessError, match="holds no trial"):
        again(run.evidence / FIRST.trial)
    assert {path.name for path in run.folder.parent.iterdir()} == {run.folder.name, LATEST}


def change_run(run: Run, **changes: object) -> None:
    file = run.folder / RUN_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def settings_of_a_replay(run: Run) -> LabSettings:
    given: list[WorkerOrders] = []

    def site_of(orders: WorkerOrders) -> FakeSite:
        given.append(orders)
        return FakeSite()

    evidence = run.evidence / FIRST.trial
    replay(evidence, results=run.folder.parent, live=False, site_of=site_of)
    [orders] = given
    return orders.lab


def test_a_replay_has_its_machines_as_the_first_had_them(run: Run) -> None:
    change_run(run, boot="cold", network={"kind": "usermode"}, accelerator={"kind": "tcg"})
    lab = settings_of_a_replay(run)
    assert (lab.boot, lab.network, lab.accelerator, lab.zfs) == (
        "cold", "usermode", "tcg", DEFAULT,
    )  # fmt: skip


def test_a_replay_probes_for_means_of_the_first_run_that_not_every_host_has(run: Run) -> None:
    change_run(run, boot="cold", network={"kind": "bridge"}, accelerator={"kind": "kvm"})
    lab = settings_of_a_replay(run)
    assert (lab.boot, lab.network, lab.accelerator) == ("cold", None, None)


def test_a_run_that_cannot_begin_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_lab: LabSettings) -> None:
        raise HarnessError("--accel kvm cannot work")

    monkeypatch.setattr("torture.trials.campaign.run.describe", refuse)
    with pytest.raises(HarnessError, match="kvm"):
        Run.begin(results=tmp_path, seed=1, lab=LabSettings(warm_states=tmp_path), options={})
    assert list(tmp_path.iterdir()) == []


def test_a_replay_of_a_run_that_is_lost_has_todays_machines(run: Run) -> None:
    (run.folder / RUN_FILE).unlink()
    assert settings_of_a_replay(run).zfs == DEFAULT


def test_a_replay_does_not_take_another_zfs_than_the_first_had(run: Run) -> None:
    change_run(run, zfs="0.6.5")
    with pytest.raises(HarnessError, match=r"ZFS 0\.6\.5"):
        settings_of_a_replay(run)


def test_a_rerun_needs_only_the_record(run: Run) -> None:
    """Published runs hold no evidence."""
    [live] = draw_trials([FIRST.cell], trials=1, run_seed=9, load_ms=4000)
    plan = draw_plan(live).cut.as_json()
    append_record(
        run.trials_file, structs.replace(record_of(live, "L"), cut=CutDocument(plan=plan))
    )
    document = json.loads((run.folder / RUN_FILE).read_text())
    document["options"]["duration_ms"] = 4000
    (run.folder / RUN_FILE).write_text(json.dumps(document))
    gone = run.evidence / live.trial
    record, _, spec = again(gone, live=True)
    assert record.repeats == live.trial
    assert replace(spec, origin=Origin.LIVE, repeats="", replay_of="") == live
    assert plan_of(spec) == draw_plan(live)
    with pytest.raises(HarnessError, match="holds no trial"):
        again(gone)


def test_a_rerun_draws_as_the_suite_of_its_record_did(run: Run) -> None:
    [live] = draw_trials([FIRST.cell], trials=1, run_seed=9, load_ms=4000)
    for draw in DRAWS:
        old = replace(live, draw=draw)
        evidence = run.evidence / old.trial
        run.trials_file.unlink()
        document = json.loads((run.folder / RUN_FILE).read_text())
        document["options"]["duration_ms"] = 4000
        (run.folder / RUN_FILE).write_text(json.dumps(document))
        plan = draw_plan(old).cut.as_json()
        append_record(
            run.trials_file, structs.replace(record_of(old, "L"), cut=CutDocument(plan=plan))
        )
        assert draw_plan(spec_of_record(evidence)).cut == draw_plan(old).cut
    run.trials_file.unlink()
    append_record(
        run.trials_file, structs.replace(record_of(old, "L"), cut=CutDocument(plan={"count": 1}))
    )
    with pytest.raises(HarnessError, match="no version of this suite's draws"):
        spec_of_record(evidence)


def test_a_trial_without_evidence_and_record_is_refused(run: Run) -> None:
    with pytest.raises(HarnessError, match="has no record of none"):
        spec_of_record(run.evidence / "none.0000-0000000000000001")
