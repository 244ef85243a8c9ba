"""The folder that shows a loss again: what it holds, and that a replay takes it from elsewhere."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.unit.fake_workers import FakeSite, record_of
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.folder import (
    CHECK_STATE,
    CUT_STATE,
    RECORDINGS,
    SPEC,
    write_document,
)
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.events import load_recording, verify_payloads
from torture.files import CHECKOUT
from torture.machines.lab.lab import LabSettings
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials_file import append_record, read_records
from torture.records.tasks.core_tasks import Cut
from torture.trials.campaign import keeping
from torture.trials.campaign.keeping import keep_reproducer
from torture.trials.campaign.run import Run
from torture.trials.plan.draw import draw_trials
from torture.trials.replay.replay import evidence_in, replay
from torture.trials.trial.shared.resident import pack, unpack_recordings

_GOLDEN = CHECKOUT / "suites" / "selftest" / "recorded" / "shelf"
"""Its second recording is over a crash state of its first."""


def _spec(fate: str) -> TrialSpec:
    cell = Cell.parse(f"iscsi-always-volatile-btrfs-{fate}")
    (spec,) = draw_trials([cell], trials=1, run_seed=1, load_ms=500)
    return spec


def _lost(tmp_path: Path, spec: TrialSpec) -> Run:
    """A run with one loss and its archive: two lives, the state after the cut, that at the check."""
    lab = LabSettings(warm_states=tmp_path)
    run = Run.begin(results=tmp_path / "results", seed=1, lab=lab, options={})
    append_record(run.trials_file, record_of(spec, "L"))
    evidence = run.evidence_of(spec.trial)
    evidence.mkdir()
    write_document(evidence, SPEC, spec.as_json())
    recordings = tmp_path / "recordings"
    shutil.copytree(_GOLDEN, recordings)
    (recordings / "flushed.view.json").rename(recordings / CUT_STATE)
    (recordings / "again-all.view.json").rename(recordings / CHECK_STATE)
    # as in a trial: the disks of the second life are those of the cut
    shelf = recordings / "life-2" / "shelf.json"
    views = re.compile(r'"\.\./\w+\.view\.json"')
    shelf.write_text(views.sub(f'"../{CUT_STATE}"', shelf.read_text()))
    with zipfile.ZipFile(evidence / RECORDINGS, "w") as archive:
        pack(archive, recordings.rglob("*"), below=recordings)
    return run


@pytest.mark.parametrize(
    ("fate", "lives"), [("bothdie", {"life-1"}), ("nasonly", {"life-1", "life-2"})]
)
def test_it_holds_the_recordings_that_the_recovered_state_needs(
    tmp_path: Path, fate: str, lives: set[str]
) -> None:
    spec = _spec(fate)
    run = _lost(tmp_path, spec)
    made = keep_reproducer(run, record_of(spec, "L"))
    assert made is not None
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
    spec = _spec("bothdie")
    made = keep_reproducer(_lost(tmp_path, spec), record_of(spec, "L"))
    assert made is not None
    unpack_recordings(evidence_in(made), tmp_path / "again")
    left = load_recording(tmp_path / "again" / "life-1")
    assert left.events == whole.events[: cut - 4]
    verify_payloads(left)
    sizes = [(folder / "data").stat().st_size for folder in (left.folder, whole.folder)]
    assert sizes[0] < sizes[1]


def test_a_replay_takes_it_from_another_place(tmp_path: Path) -> None:
    spec = _spec("bothdie")
    run = _lost(tmp_path, spec)
    made = keep_reproducer(run, record_of(spec, "L"))
    assert made is not None
    moved = tmp_path / "elsewhere"
    made.rename(moved)
    shutil.rmtree(run.folder)
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
    other = replace(record_of(spec, "L"), trial="another")
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
    made = keep_reproducer(_lost(tmp_path, spec), record_of(spec, "L"))
    assert made is not None
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
