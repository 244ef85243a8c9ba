"""`kill -9` in the middle: nothing stays but readable records, and nobody else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from suites.selftest.machinery.processes import children_of, commands_in, sandboxes_of, start_run
from torture.campaign.run import Run
from torture.deadlines import truth, wait_for
from torture.host.scratch import Scratch
from torture.record.run_layout import TRIALS_FILE
from torture.record.trials import TrialRecord, read_records
from torture.verdict.verdicts import Verdict

_CELL = "iscsi-always-noslog-btrfs-bothdie"
_DEADLINE_S = 120
_QEMU = "qemu-system-x86"
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


def _wait_for_qemu(run: subprocess.Popen[bytes], log: Path) -> set[str]:
    """The sandboxes of a run, once a QEMU lives in one."""

    def look() -> set[str] | None:
        assert run.poll() is None, log.read_text()
        sandboxes = sandboxes_of(run.pid)
        return sandboxes if _QEMU in commands_in(sandboxes).values() else None

    return wait_for(look, what=f"QEMU of the run of {log}", deadline_s=_DEADLINE_S)


def _records(results: Path) -> tuple[TrialRecord, ...]:
    read = read_records(results / "latest" / TRIALS_FILE)
    assert read.unreadable_lines == 0
    return read.records


def _scratch(results: Path, base: Path) -> Path:
    run = Run(folder=results / (results / "latest").readlink())
    return Scratch(base).home / run.scratch_name


def test_killed_runs_leave_nothing_and_disturb_no_one(
    start: Start, vm_scratch: Path, tmp_path: Path
) -> None:
    doomed, other = start("doomed", "--trials", "50"), start("other", "--trials", "50")
    doomed_sandboxes = _wait_for_qemu(doomed, tmp_path / "doomed.log")
    wait_for(
        lambda: truth(_records(tmp_path / "doomed")), what="first record", deadline_s=_DEADLINE_S
    )
    other_sandboxes = _wait_for_qemu(other, tmp_path / "other.log")

    for pid, command in commands_in(doomed_sandboxes).items():
        if command.startswith("python"):
            os.kill(pid, signal.SIGSTOP)  # a worker must not be what ends its sandbox
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait(10)
    wait_for(
        lambda: truth(not commands_in(doomed_sandboxes)),
        what="end of all it started",
        deadline_s=20,
    )
    assert {record.verdict for record in _records(tmp_path / "doomed")} == {Verdict.INTACT}
    left = _scratch(tmp_path / "doomed", vm_scratch)
    assert left.exists(), "the next start has to find it, or this test proves nothing"

    Scratch(vm_scratch).remove_abandoned()  # what every start does first
    assert not left.exists()
    assert _scratch(tmp_path / "other", vm_scratch).exists()
    assert commands_in(other_sandboxes)
    assert other.poll() is None


def test_a_killed_worker_costs_its_trial_and_no_more(start: Start, tmp_path: Path) -> None:
    run = start("run", "--trials", "2")
    sandboxes = _wait_for_qemu(run, tmp_path / "run.log")
    # libvirt asks QEMU what it can do before the first trial: a QEMU alone is no trial
    consoles = "run/latest/trials/*/nas-1.console.log"
    wait_for(
        lambda: truth(list(tmp_path.glob(consoles))), what="first trial", deadline_s=_DEADLINE_S
    )
    [worker] = children_of(run.pid)
    os.kill(worker, signal.SIGKILL)
    wait_for(
        lambda: truth(not commands_in(sandboxes)), what="end of the worker's sandbox", deadline_s=20
    )
    run.wait(_DEADLINE_S)
    verdicts = [record.verdict for record in _records(tmp_path / "run")]
    assert verdicts == [Verdict.INCONCLUSIVE, Verdict.INTACT]
