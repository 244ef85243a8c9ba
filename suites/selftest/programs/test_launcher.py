"""The launcher gives the same outcome as a program that is started for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import LAUNCHER, Launcher
from torture.errors import DeadlineExceeded
from torture.files import CHECKOUT

DEADLINE_S = 120
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
    started = subprocess.run(
        [sys.executable, *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    launched = LAUNCHER.run(*arguments)
    assert launched.returncode == started.returncode
    assert launched.stdout == started.stdout
    assert launched.stderr == started.stderr
    assert started.stdout + started.stderr


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
