"""Which cells a session runs: a matrix's, or exactly those of `--cell`; and their marks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from torture.matrix.cells import Matrix, cells_of

CHECKOUT = Path(__file__).resolve().parents[3]
TEST = "suites/powercut/test_powercut.py::test_cell_keeps_its_promise"
IN_NO_MATRIX = "iscsi-always-mirror-optane-raidz1-lyingdisks-xfs-bothdie"
IN_QUICK = "iscsi-always-noslog-btrfs-bothdie"
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


def test_cells_that_are_named_replace_the_matrix_each_once() -> None:
    arguments = [f"--cell={name}" for name in (IN_NO_MATRIX, IN_QUICK, IN_NO_MATRIX)]
    assert cells_in(collect("--matrix", "full", *arguments)) == [IN_NO_MATRIX, IN_QUICK]


def test_named_cells_are_narrowed_by_mark_too() -> None:
    arguments = [f"--cell={name}" for name in (IN_NO_MATRIX, IN_QUICK)]
    assert cells_in(collect(*arguments, "-m", "optane")) == [IN_NO_MATRIX]


def test_a_mark_selects_its_choice_and_nothing_that_only_sounds_like_it() -> None:
    chosen = [cell.name for cell in cells_of(Matrix.FULL) if cell.axes["slog"] == "plp"]
    assert cells_in(collect("--matrix", "full", "-m", "plp")) == chosen
    assert len(chosen) > 1


def test_a_cell_there_is_none_of_ends_the_session_with_the_reason() -> None:
    done = collect("--cell=iscsi-always-noslog-optane-btrfs-bothdie")
    assert done.returncode == 4
    assert "ERROR: --cell: 'optane' is a slog's class" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
