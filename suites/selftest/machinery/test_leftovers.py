"""`kill -9` in the middle: nothing stays but readable records, and nobody else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suites.selftest.machinery.processes import start_run, working_in
from torture.lab.deadlines import truth, wait_for
from torture.lab.scratch import Scratch
from torture.matrix.verdicts import Verdict
from torture.record.trials import TRIALS_FILE, read_records

_CELL = "iscsi-always-noslog-btrfs-bothdie"
_DEADLINE_S = 120
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(vm_scratch: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts runs, all with their scratch below one base, and ends them after the test."""
    runs: list[subprocess.Popen[bytes]] = []

    def start_one(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        run = start_run(
            "--matrix", "quick", "-k", _CELL, "--jobs", "1", *arguments,
            scratch=vm_scratch, results=tmp_path / name, log=tmp_path / f"{name}.log",
        )  # fmt: skip
        runs.append(run)
        return run

    yield start_one
    for run in runs:
        run.kill()
        run.wait(20)


def _scratch_with_qemu(run: subprocess.Popen[bytes], *, results: Path, home: Path) -> Path:
    """The scratch directory of a run, once a QEMU works in it."""

    def look() -> Path | None:
        assert run.poll() is None, results.with_suffix(".log").read_text()
        latest = results / "latest"
        if not latest.is_symlink():
            return None
        directory = home / latest.readlink().name[-10:]
        has_qemu = any("qemu-system" in words for words in _workers(results, directory))
        return directory if has_qemu else None

    return wait_for(look, what=f"QEMU of the run in {results}", deadline_s=_DEADLINE_S)


def _workers(results: Path, scratch: Path) -> list[str]:
    """Command lines of what a run has started: QEMU writes consoles to results, nbdkit serves scratch."""
    folder = results / (results / "latest").readlink()
    return list(working_in(folder, scratch).values())


def test_killed_runs_leave_nothing_and_disturb_no_one(
    start: Start, vm_scratch: Path, tmp_path: Path
) -> None:
    home = Scratch(vm_scratch).home
    doomed = start("doomed", "--trials", "50")
    other = start("other", "--trials", "50")

    doomed_scratch = _scratch_with_qemu(doomed, results=tmp_path / "doomed", home=home)
    other_scratch = _scratch_with_qemu(other, results=tmp_path / "other", home=home)
    records = tmp_path / "doomed" / "latest" / TRIALS_FILE
    wait_for(
        lambda: truth(read_records(records).records), what="first record", deadline_s=_DEADLINE_S
    )

    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait(10)
    wait_for(
        lambda: truth(not _workers(tmp_path / "doomed", doomed_scratch)),
        what="end of all it had started",
        deadline_s=20,
    )
    assert doomed_scratch.exists(), "the next start has to find it, or this test proves nothing"
    read = read_records(records)
    assert read.unreadable_lines == 0
    assert all(record.verdict is Verdict.INTACT for record in read.records)

    Scratch(vm_scratch).remove_abandoned()  # what every start does first
    assert not doomed_scratch.exists()
    assert other_scratch.exists()
    assert _workers(tmp_path / "other", other_scratch)
    assert other.poll() is None


def test_a_killed_worker_costs_its_trial_and_no_more(
    start: Start, vm_scratch: Path, tmp_path: Path
) -> None:
    home = Scratch(vm_scratch).home
    run = start("run", "--trials", "2")
    _scratch_with_qemu(run, results=tmp_path / "run", home=home)
    [worker] = _children(run.pid)
    os.kill(worker, signal.SIGKILL)
    run.wait(_DEADLINE_S)
    records = read_records(tmp_path / "run" / "latest" / TRIALS_FILE).records
    verdicts = [record.verdict for record in records]
    assert verdicts == [Verdict.INCONCLUSIVE, Verdict.INTACT]


def _children(pid: int) -> list[int]:
    """Children of every thread of a process."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
