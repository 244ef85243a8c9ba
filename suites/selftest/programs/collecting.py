"""A session of suites/powercut that only collects: what would be run, and nothing is."""

from __future__ import annotations

import subprocess

from suites.selftest.programs.launcher import LAUNCHER

TEST = "suites/powercut/test_powercut.py::test_cell_keeps_its_guarantee"


def collect(*arguments: str) -> subprocess.CompletedProcess[str]:
    return LAUNCHER.run("-m", "pytest", "suites/powercut", "--collect-only", "-q", *arguments)


def cells_in(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The names of the cells that would be run, in order."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return [line.removeprefix(f"{TEST}[")[:-1] for line in lines if line.startswith(TEST)]
