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


def _qemu_of(home: Path, name_of_run: str) -> int | None:
    for pid, words in working_in(home / name_of_run).items():
        if "qemu-system" in words:
            return pid
    return None


def _scratch_of(results: Path, home: Path) -> Path | None:
    latest = results / "latest"
    return home / latest.readlink().name[-10:] if latest.is_symlink() else None


def test_killed_runs_leave_nothing_and_disturb_no_one(
    start: Start, vm_scratch: Path, tmp_path: Path
) -> None:
    home = Scratch(vm_scratch).home
    doomed = start("doomed", "--trials", "50")
    other = start("other", "--trials", "50")

    def scratch_with_qemu(name: str) -> Path:
        directory = wait_for(
            lambda: _scratch_of(tmp_path / name, home), what="scratch", deadline_s=_DEADLINE_S
        )
        wait_for(
            lambda: _qemu_of(home, directory.name), what="QEMU of the run", deadline_s=_DEADLINE_S
        )
        return directory

    doomed_scratch, other_scratch = scratch_with_qemu("doomed"), scratch_with_qemu("other")
    records = tmp_path / "doomed" / "latest" / TRIALS_FILE
    wait_for(
        lambda: truth(read_records(records).records), what="first record", deadline_s=_DEADLINE_S
    )

    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait(10)
    wait_for(
        lambda: truth(not working_in(doomed_scratch)),
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
    assert working_in(other_scratch)
    assert other.poll() is None


def test_a_killed_worker_costs_its_trial_and_no_more(
    start: Start, vm_scratch: Path, tmp_path: Path
) -> None:
    home = Scratch(vm_scratch).home
    run = start("run", "--trials", "2")
    directory = wait_for(
        lambda: _scratch_of(tmp_path / "run", home), what="scratch", deadline_s=_DEADLINE_S
    )
    wait_for(lambda: _qemu_of(home, directory.name), what="QEMU", deadline_s=_DEADLINE_S)
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
