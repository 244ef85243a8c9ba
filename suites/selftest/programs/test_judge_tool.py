"""`tools/judge` as it is typed, over one trial and over nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import LAUNCHER
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.records.test_damaged_evidence import LAST_WORDS, WHOLE, store
from torture.checkout import CHECKOUT
from torture.facts.evidence.folder import READBACK
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.run_layout import RunLayout
from torture.records.record.trials_file import append_record
from torture.records.scoring.score import score


def judge(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return LAUNCHER.run(CHECKOUT / "tools" / "judge", *arguments)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """An intact trial, whose run has it as corrupted."""
    run = RunLayout(folder=tmp_path / "run")
    folder = store(run.evidence, WHOLE, LAST_WORDS)
    was = changed(score(folder, timings={}), verdict=Verdict.CORRUPTED, lost=2)
    append_record(run.trials_file, was)
    return folder


def test_one_trial_is_judged_anew_beside_its_old_verdict(trial: Path) -> None:
    done = judge(trial)
    assert done.returncode == 0, done.stderr
    name, then, now, *_ = done.stdout.splitlines()
    assert (name, then) == (trial.name, "  then: corrupted, 2 of 6 lost")
    assert now == "  now:  intact, 0 of 6 lost"


def test_the_reasons_of_todays_verdict_follow_it(trial: Path) -> None:
    (trial / READBACK).unlink()
    done = judge(trial)
    assert done.returncode == 0, done.stderr
    reasons = score(trial, timings={}).reasons
    assert reasons
    assert done.stdout.splitlines()[3:] == [f"  {reason}" for reason in reasons]


def test_a_trial_that_its_run_does_not_know_is_judged_all_the_same(trial: Path) -> None:
    RunLayout.of_evidence(trial).trials_file.unlink()
    done = judge(trial)
    assert done.returncode == 0, done.stderr
    assert "then: its run has no record of it" in done.stdout


def test_the_records_of_a_run_are_not_written_from_one_trial(trial: Path) -> None:
    refused = judge(trial, "--write")
    assert refused.returncode == 2
    assert "--write takes a run" in refused.stderr


def test_a_folder_that_holds_neither_is_bad_input_as_for_the_other_tools(tmp_path: Path) -> None:
    refused = judge(tmp_path)
    assert refused.returncode == 2
    assert "no trials in" in refused.stderr
    assert "Traceback" not in refused.stderr
