"""A trial again, over a worker without machines; the first trial stays, with another name.

The folder that shows a loss again: what it holds, and that a replay takes it from elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from suites.selftest.unit.fake_workers import FakeSite, record_of
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    CHECK_STATE,
    CUT_STATE,
    RECORDINGS,
    SPEC,
    write_document,
)
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.events import load_recording, verify_payloads
from torture.facts.zfs.versions import DEFAULT
from torture.files import CHECKOUT
from torture.machines.lab.lab import LabSettings
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import LATEST, RUN_FILE, RunLayout
from torture.records.record.specs import DRAWS, TrialSpec
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import append_record, read_records
from torture.records.schedules.fixed import repeat
from torture.records.tasks.core_tasks import Cut
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.store import Store
from torture.trials.campaign import keeping
from torture.trials.campaign.keeping import keep_reproducer
from torture.trials.campaign.run import Run
from torture.trials.plan.draw import draw_trials
from torture.trials.plan.trial_plan import draw_plan, plan_of
from torture.trials.replay.replay import evidence_in, replay, spec_of_record
from torture.trials.trial.shared.resident import pack, unpack_recordings
from torture.trials.workers.protocol import WorkerOrders

[FIRST] = draw_trials(
    [Cell.parse("iscsi-always-lying-btrfs-bothdie")], trials=1, run_seed=1, load_ms=500
)


def run_with_loss(folder: Path, spec: TrialSpec) -> Run:
    """A run whose trial rolled back, and which is the latest."""
    lab = LabSettings(warm_states=folder)
    run = Run.begin(results=folder / "results", seed=1, lab=lab, options={"jobs": 1})
    append_record(run.trials_file, record_of(spec, "L"))
    evidence = run.evidence_of(spec.trial)
    evidence.mkdir()
    write_document(evidence, SPEC, spec.as_json())
    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_with_loss(tmp_path, FIRST)


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


_SAID = FIRST.as_json()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (_SAID | {"plan": 7}, "is of another version"),
        (_SAID | {"plan": {}}, "is of another version"),
        (_SAID | {"plan": {"cut": {"aim": "moon"}}}, "is of another version"),
        (_SAID | {"plan": {"cut": {}, "survivors": []}}, "is of another version"),
        ({"cell": FIRST.cell.name}, "holds no trial"),
    ],
)
def test_a_plan_of_another_version_or_no_trial_is_refused_before_anything_begins(
    run: Run, spec: dict[str, object], why: str
) -> None:
    write_document(run.evidence / FIRST.trial, SPEC, spec)
    with pytest.raises(HarnessError, match=why):
        again(run.evidence / FIRST.trial)
    assert {path.name for path in run.folder.parent.iterdir()} == {run.folder.name, LATEST}


def change_run(run: Run, **changes: object) -> None:
    file = run.folder / RUN_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def keep_record(run: Run, spec: TrialSpec, plan: dict[str, Any]) -> None:
    """The record of a trial with this plan, in a run whose loads lasted 4 s."""
    change_run(run, options={"duration_ms": 4000})
    record = structs.replace(record_of(spec, "L"), cut=CutDocument(plan=plan))
    append_record(run.trials_file, record)


def settings_of_a_replay(run: Run) -> LabSettings:
    given: list[WorkerOrders] = []

    def site_of(orders: WorkerOrders) -> FakeSite:
        given.append(orders)
        return FakeSite()

    evidence = run.evidence / FIRST.trial
    replay(evidence, results=run.folder.parent, live=False, site_of=site_of)
    [orders] = given
    return orders.lab


@pytest.mark.parametrize(
    ("network", "accelerator", "means"),
    [("usermode", "tcg", ("usermode", "tcg")), ("bridge", "kvm", (None, None))],
)
def test_a_replay_has_its_machines_as_the_first_and_probes_for_means_that_not_every_host_has(
    run: Run, network: str, accelerator: str, means: tuple[str | None, ...]
) -> None:
    change_run(run, boot="cold", network={"kind": network}, accelerator={"kind": accelerator})
    lab = settings_of_a_replay(run)
    assert (lab.boot, lab.network, lab.accelerator, lab.zfs) == ("cold", *means, DEFAULT)


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
    keep_record(run, live, draw_plan(live).cut.as_json())
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
        keep_record(run, old, draw_plan(old).cut.as_json())
        assert draw_plan(spec_of_record(evidence)).cut == draw_plan(old).cut
    run.trials_file.unlink()
    keep_record(run, old, {"count": 1})
    with pytest.raises(HarnessError, match="no version of this suite's draws"):
        spec_of_record(evidence)


def test_a_trial_without_evidence_and_record_is_refused(run: Run) -> None:
    with pytest.raises(HarnessError, match="has no record of none"):
        spec_of_record(run.evidence / "none.0000-0000000000000001")


# The folder that shows a loss again: what it holds, and that a replay takes it from elsewhere.

_GOLDEN = CHECKOUT / "suites" / "selftest" / "recorded" / "shelf"
"""Its second recording is over a crash state of its first."""


def _spec(fate: str) -> TrialSpec:
    cell = Cell.parse(f"iscsi-always-volatile-btrfs-{fate}")
    (spec,) = draw_trials([cell], trials=1, run_seed=1, load_ms=500)
    return spec


def _lost(tmp_path: Path, spec: TrialSpec) -> Run:
    """A run with one loss and its archive: two lives, the state after the cut, that at the check."""
    run = run_with_loss(tmp_path, spec)
    recordings = tmp_path / "recordings"
    shutil.copytree(_GOLDEN, recordings)
    (recordings / "flushed.view.json").rename(recordings / CUT_STATE)
    (recordings / "again-all.view.json").rename(recordings / CHECK_STATE)
    # as in a trial: the disks of the second life are those of the cut
    shelf = recordings / "life-2" / "shelf.json"
    views = re.compile(r'"\.\./\w+\.view\.json"')
    shelf.write_text(views.sub(f'"../{CUT_STATE}"', shelf.read_text()))
    with zipfile.ZipFile(run.evidence_of(spec.trial) / RECORDINGS, "w") as archive:
        pack(archive, recordings.rglob("*"), below=recordings)
    return run


def _reproducer(folder: Path, spec: TrialSpec) -> Path:
    """That of a run with one loss."""
    made = keep_reproducer(_lost(folder, spec), record_of(spec, "L"))
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("fate", "lives"), [("bothdie", {"life-1"}), ("nasonly", {"life-1", "life-2"})]
)
def test_it_holds_the_recordings_that_the_recovered_state_needs(
    tmp_path: Path, fate: str, lives: set[str]
) -> None:
    made = _reproducer(tmp_path, _spec(fate))
    unpack_recordings(evidence_in(made), tmp_path / "again")
    assert {path.name for path in (tmp_path / "again").glob("life-*")} == lives
    state = read_crash_state(tmp_path / "again" / CUT_STATE)
    verify_payloads(load_recording(state.recording))
    with zipfile.ZipFile(evidence_in(made) / RECORDINGS) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert (tmp_path / "again" / CHECK_STATE).exists() == (fate == "nasonly")


def test_a_recording_ends_soon_after_its_last_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = load_recording(_GOLDEN / "life-1")
    cut = read_crash_state(_GOLDEN / "flushed.view.json").cut
    monkeypatch.setattr(keeping, "_EVENTS_AFTER", -5)  # this one ends with its cut
    made = _reproducer(tmp_path, _spec("bothdie"))
    unpack_recordings(evidence_in(made), tmp_path / "again")
    left = load_recording(tmp_path / "again" / "life-1")
    assert left.events == whole.events[: cut - 4]
    verify_payloads(left)
    sizes = [(folder / "data").stat().st_size for folder in (left.folder, whole.folder)]
    assert sizes[0] < sizes[1]


def test_a_replay_takes_it_from_another_place(tmp_path: Path) -> None:
    spec = _spec("bothdie")
    made = _reproducer(tmp_path, spec)
    moved = tmp_path / "elsewhere"
    made.rename(moved)
    shutil.rmtree(tmp_path / "results")
    site = FakeSite(outcome=lambda _spec: "C")
    replay(
        evidence_in(moved),
        results=tmp_path / "new",
        zfs="2.4.4",
        task_of=lambda _cell: Cut(),
        site_of=lambda _orders: site,
    )
    (begun,) = site.begun
    assert (begun.repeats, begun.task) == (spec.trial, Cut())
    text = (moved / keeping.README).read_text()
    assert f"seed is {spec.seed}" in text
    assert "tools/replay DIR" in text


def test_a_run_keeps_no_more_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "KEPT_MAX", 0)
    spec = _spec("bothdie")
    run = _lost(tmp_path, spec)
    assert keep_reproducer(run, record_of(spec, "L")) is not None  # the first makes the folder
    other = structs.replace(record_of(spec, "L"), trial="another")
    shutil.copytree(run.evidence_of(spec.trial), run.evidence_of("another"))
    assert keep_reproducer(run, other) is None


def test_a_loss_without_a_recording_has_none(tmp_path: Path) -> None:
    spec = _spec("bothdie")
    run = _lost(tmp_path, spec)
    (run.evidence_of(spec.trial) / RECORDINGS).unlink()
    assert keep_reproducer(run, record_of(spec, "L")) is None
    assert not run.reproducers.exists()


def test_it_is_a_run_of_one_trial(tmp_path: Path) -> None:
    spec = _spec("bothdie")
    made = _reproducer(tmp_path, spec)
    assert list(made.parent.iterdir()) == [made], "nothing half made is left"
    (record,) = read_records(RunLayout(folder=made).trials_file).records
    assert (record.trial, record.verdict) == (spec.trial, record_of(spec, "L").verdict)


def test_one_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    spec = _spec("bothdie")
    run = _lost(tmp_path, spec)
    (run.evidence_of(spec.trial) / RECORDINGS).write_bytes(b"no archive")
    with pytest.raises(HarnessError):
        keep_reproducer(run, record_of(spec, "L"))
    assert not list(run.reproducers.iterdir())
