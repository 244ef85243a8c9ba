"""The launcher gives the same outcome as a program that is started for real."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import LAUNCHER, Launcher, run_program
from torture.errors import DeadlineExceeded
from torture.files import CHECKOUT

TOOLS = CHECKOUT / "tools"


@pytest.mark.parametrize(
    "arguments",
    [
        (TOOLS / "plan", "--rate", "0.01", "--results", "/nonexistent"),
        (TOOLS / "report", "/nonexistent"),
        ("-m", "pytest", "suites/powercut", "--cell=nonsense"),
    ],
    ids=["plan", "report", "pytest"],
)
def test_a_program_says_and_returns_the_same_when_started(
    arguments: tuple[str | Path, ...],
) -> None:
    by_itself = run_program(sys.executable, *arguments)
    launched = LAUNCHER.run(*arguments)
    assert launched.returncode == by_itself.returncode
    assert launched.stdout == by_itself.stdout
    assert launched.stderr == by_itself.stderr
    assert by_itself.stdout + by_itself.stderr


def test_a_program_that_hangs_is_ended_and_the_next_one_starts(tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text("import time\ntime.sleep(60)\n")
    launcher = Launcher()
    try:
        assert launcher.run("-m", "this").returncode == 0
        with pytest.raises(DeadlineExceeded, match="did not end within 1 s"):
            launcher.run(script, deadline_s=1)
        script.write_text("raise SystemExit('enough')\n")
        ended = launcher.run(script)
        assert (ended.returncode, ended.stderr) == (1, "enough\n")
    finally:
        launcher.close()
