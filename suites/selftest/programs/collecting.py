"""A session of suites/powercut that only collects: what would be run, and nothing is."""

from __future__ import annotations

import subprocess
import sys

from torture.checkout import CHECKOUT

TEST = "suites/powercut/test_powercut.py::test_cell_keeps_its_guarantee"
DEADLINE_S = 60


def collect(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "suites/powercut", "--collect-only", "-q", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def cells_in(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The names of the cells that would be run, in order."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return [line.removeprefix(f"{TEST}[")[:-1] for line in lines if line.startswith(TEST)]
