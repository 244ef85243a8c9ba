"""Tools as they are typed: plan, run, judge and replay, each with its refusals."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.programs.launcher import tool
from suites.selftest.unit.facts.measured_runs import make_run
from suites.selftest.unit.fake_workers import record_of
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.records.test_damaged_evidence import LAST_WORDS, WHOLE, store
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.folder import READBACK
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RunLayout
from torture.records.record.trials import Absence, TrialRecord
from torture.records.record.trials_file import append_record
from torture.records.scoring.score import score
from torture.trials.plan.draw import draw_trials


def plan(*arguments: str, results: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    narrow = os.environ | {"COLUMNS": "80"}
    return tool("plan", *arguments, "--results", results, code=code, environment=narrow)


def test_the_tool_tells_every_number_with_its_time(tmp_path: Path) -> None:
    make_run(tmp_path, "20260101-000000-aaaa", jobs=2, trials=5, timings={"check": 72_000})
    done = plan(
        *("--rate", "0.01", "--until", "upper<0.01", "--versus", "0.05", "--cells", "12"),
        results=tmp_path,
    )
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = [line.split() for line in done.stdout.splitlines()]
    for cuts, time in (("368", "44 h 10 min"), ("299", "35 h 53 min"), ("535", "64 h 12 min")):
        assert any(cuts in row and " ".join(row).endswith(time) for row in rows), (cuts, time)
    assert "100 cuts an hour, as the last 5 trials here" in done.stdout


def test_a_disaster_among_cells_that_lose_has_a_number_of_cuts(tmp_path: Path) -> None:
    done = plan(
        *("--rate", "0", "--versus", "0.6", "--cells", "40", "--lossy", "4"), results=tmp_path
    )
    assert "but 4 cells of all rates" in " ".join(done.stdout.split())
    assert "at most 0 %" not in done.stdout


def test_where_nothing_was_measured_the_tool_says_how(tmp_path: Path) -> None:
    done = plan("--rate", "0.01", results=tmp_path)
    assert "368" in done.stdout
    assert "next: tools/run suites/powercut" in done.stdout
    assert "time for" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--rate", "1.5"), "1.5 is not between 0 and 1"),
        (("--until", "upper>0.01"), "ask 'upper<'"),
        ((), "give a rate"),
        (("--rate", "0"), "a rate of 0 needs --versus"),
        (("--rate", "0", "--versus", "0.6", "--cells", "4", "--lossy", "4"), "at most 3 others"),
        (("--rate", "0.01", "--versus", "0.01"), "equal"),
    ],
)
def test_the_tool_refuses_questions_without_sense(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    done = plan(*arguments, results=tmp_path, code=2)
    assert complaint in done.stderr


# `tools/run` refuses mistakes before it sets anything up.

Started = Callable[..., int]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Runs the tool's `main` with these arguments, over a set-up that fails."""

    def run(*arguments: str) -> int:
        def fail(**_: object) -> bool:
            raise HarnessError("the set-up began")

        monkeypatch.setattr("torture.setup.provision.provision", fail)
        monkeypatch.setattr(sys, "path", [*sys.path])
        code: int = runpy.run_path(str(CHECKOUT / "tools" / "run"))["main"]([*arguments])
        return code

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cell", "iscsi-always-noslog-btfrs-bothdie"), "ERROR: --cell: 'btfrs' in "),
        (("--cell=icsi", "--collect-only"), "ERROR: --cell: 'icsi' in "),
        (("--matrix", "quik"), "'quik' is not one of quick, default, full"),
        (("--axis", "logbais=throughput"), "ERROR: --axis: no axis is called 'logbais'"),
        (
            ("--axis", "recordsize=record4k", "--cell", "iscsi-always-noslog-btrfs-bothdie"),
            "--axis: ",
        ),
        (("--zfs", "/nowhere"), "--zfs: there is no folder /nowhere; known are: 2.3.9"),
        (
            ("--zfs=2.1.11", "--axis", "zvol_use_blk_mq=blkmq"),
            "ERROR: --zfs: OpenZFS 2.1.11 has no",
        ),
        (("--property", "sync=always"), "ERROR: --property: sync is an axis of its own"),
        (("--tunable", "zil_slog_bulk"), "ERROR: --tunable: 'zil_slog_bulk' is no setting"),
        (("--cell",), "--cell: expected one argument"),
    ],
)
def test_a_typo_is_refused_before_the_set_up(
    started: Started, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started("suites/powercut", *arguments) == pytest.ExitCode.USAGE_ERROR
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("suites/selftest", "-k", "not matrix", "-m", "pure", "--zzz", "x"),
        ("suites/powercut", "--matrix", "quick", "--trials=3", "--axis", "logbias=throughput"),
        ("suites/powercut", "--property", "recordsize=8K", "--tunable=zil_slog_bulk=1"),
        ("suites/powercut", "--zfs", str(CHECKOUT)),
    ],
)
def test_the_set_up_begins_where_only_pytest_can_tell(
    started: Started, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(*arguments) == 4
    assert capsys.readouterr().err == "set-up failed: the set-up began\n"


# `tools/judge` as it is typed, over one trial and over nothing.


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """An intact trial, whose run has it as corrupted."""
    run = RunLayout(folder=tmp_path / "run")
    folder = store(run.evidence, WHOLE, LAST_WORDS)
    was = changed(score(folder, timings={}), verdict=Verdict.CORRUPTED, lost=2)
    append_record(run.trials_file, was)
    return folder


def test_one_trial_is_judged_anew_beside_its_old_verdict(trial: Path) -> None:
    done = tool("judge", trial)
    name, then, now, *_ = done.stdout.splitlines()
    assert (name, then) == (trial.name, "  then: corrupted, 2 of 6 lost")
    assert now == "  now:  intact, 0 of 6 lost"


def test_the_reasons_of_todays_verdict_follow_it(trial: Path) -> None:
    (trial / READBACK).unlink()
    done = tool("judge", trial)
    reasons = score(trial, timings={}).reasons
    assert reasons
    assert done.stdout.splitlines()[3:] == [f"  {reason}" for reason in reasons]


def test_a_trial_that_its_run_does_not_know_is_judged_all_the_same(trial: Path) -> None:
    RunLayout.of_evidence(trial).trials_file.unlink()
    done = tool("judge", trial)
    assert "then: its run has no record of it" in done.stdout


def test_the_records_of_a_run_are_not_written_from_one_trial(trial: Path) -> None:
    refused = tool("judge", trial, "--write", code=2)
    assert "--write takes a run" in refused.stderr


def test_a_folder_that_holds_neither_is_bad_input_as_for_the_other_tools(tmp_path: Path) -> None:
    refused = tool("judge", tmp_path, code=2)
    assert "no trials in" in refused.stderr


# The exit code of `tools/replay`, over a replay that needs no machines.

[SAFE] = draw_trials(
    [Cell.parse("iscsi-always-noslog-btrfs-bothdie")], trials=1, run_seed=1, load_ms=500
)
SOUND = record_of(SAFE, ".")
Replayed = Callable[[TrialRecord], int]


@pytest.fixture
def replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replayed:
    """Runs the tool's `main` over a replay that gives this record."""

    def run(record: TrialRecord) -> int:
        monkeypatch.setattr("torture.setup.provision.use_environment", lambda: None)
        monkeypatch.setattr("torture.trials.replay.replay.first_record", lambda *_: SOUND)
        monkeypatch.setattr(
            "torture.trials.replay.replay.replay", lambda *_, **__: (record, tmp_path)
        )
        monkeypatch.setattr(sys, "argv", ["tools/replay", str(tmp_path)])
        monkeypatch.setattr(sys, "path", [*sys.path])
        code: int = runpy.run_path(str(CHECKOUT / "tools" / "replay"))["main"]()
        return code

    return run


@pytest.mark.parametrize(("outcome", "code"), [(".", 0), ("L", 1), ("C", 1), ("?", 2)])
def test_the_exit_code_tells_how_the_replay_ended(
    replayed: Replayed, outcome: str, code: int
) -> None:
    assert replayed(record_of(SAFE, outcome)) == code


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (replace(SOUND, cut=CutDocument(audit=AuditDocument(broken=2))), "the audit"),
        (replace(SOUND, absence=Absence(unfounded=3)), "3 acknowledgements came while"),
    ],
    ids=["audit", "absence"],
)
def test_a_breach_without_a_loss_is_a_failure_with_its_reason(
    replayed: Replayed, record: TrialRecord, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(record) == 1
    assert said in capsys.readouterr().out


def test_machines_to_hold_get_the_evidence_and_nothing_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held: list[tuple[Path, str, str]] = []

    def hold(evidence: Path, *, zfs: str, linux: str) -> int:
        held.append((evidence, zfs, linux))
        return 0

    monkeypatch.setattr("torture.setup.provision.use_environment", lambda: None)
    monkeypatch.setattr("torture.trials.replay.serve.hold", hold)
    argv = ["tools/replay", "--hold", "--zfs", "2.4.4", "--linux", "bookworm", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert runpy.run_path(str(CHECKOUT / "tools" / "replay"))["main"]() == 0
    assert held == [(tmp_path, "2.4.4", "bookworm")]
    monkeypatch.setattr(sys, "argv", ["tools/replay", "--shell", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(CHECKOUT / "tools" / "replay"))["main"]()
    assert "use --hold" in capsys.readouterr().err
