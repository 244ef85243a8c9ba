"""`tools/plan` as it is typed: sample sizes, each with its time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import LAUNCHER
from suites.selftest.unit.facts.measured_runs import make_run
from torture.checkout import CHECKOUT

DEADLINE_S = 60


def plan(*arguments: str, results: Path) -> subprocess.CompletedProcess[str]:
    return LAUNCHER.run(
        CHECKOUT / "tools" / "plan", *arguments, "--results", results,
        environment=os.environ | {"COLUMNS": "80"},
    )  # fmt: skip


def test_the_tool_tells_every_number_with_its_time(tmp_path: Path) -> None:
    make_run(tmp_path, "20260101-000000-aaaa", jobs=2, trials=5, timings={"check": 72_000})
    done = plan(
        *("--rate", "0.01", "--until", "upper<0.01", "--versus", "0.05", "--cells", "12"),
        results=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = [line.split() for line in done.stdout.splitlines()]
    for cuts, time in (("368", "44 h 10 min"), ("299", "35 h 53 min"), ("535", "64 h 12 min")):
        assert any(cuts in row and " ".join(row).endswith(time) for row in rows), (cuts, time)
    assert "100 cuts an hour, as the last 5 trials here" in done.stdout


def test_a_disaster_among_cells_that_lose_has_a_number_of_cuts(tmp_path: Path) -> None:
    done = plan(
        *("--rate", "0", "--versus", "0.6", "--cells", "40", "--lossy", "4"), results=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "but 4 cells of all rates" in " ".join(done.stdout.split())
    assert "at most 0 %" not in done.stdout


def test_where_nothing_was_measured_the_tool_says_how(tmp_path: Path) -> None:
    done = plan("--rate", "0.01", results=tmp_path)
    assert done.returncode == 0
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
    done = plan(*arguments, results=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
