"""`kill -9` in the middle: only readable records stay, no other run is disturbed, and it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from suites.selftest.runs.processes import (
    Sandbox,
    children_of,
    commands_in,
    sandboxes_of,
    start_run,
)
from torture.deadlines import truth, wait_for
from torture.machines.host.scratch import Scratch
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.trials.campaign.run import Run

_CELL = "iscsi-always-noslog-btrfs-bothdie"
_LOAD_S = 0.5
"""The trial's verdict is not asked here, as long as it ends."""
_DEADLINE_S = 240
_QEMU = "qemu-system-x86"
Start = Callable[..., subprocess.Popen[bytes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """Two runs: one was killed as a whole, of the other only a worker."""

    killed_left_scratch: bool
    """Before the next start; else what that one removes would prove nothing."""
    scratch_after_next_start: bool
    killed_records: tuple[TrialRecord, ...]
    continued_records: tuple[TrialRecord, ...]
    """The records of the killed run after `--continue`."""
    other_was_disturbed: bool
    """Ended, lost its scratch or all of its processes, when the first run was killed."""
    other_records: tuple[TrialRecord, ...]


@pytest.fixture(scope="module")
def story(vm_scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("leftovers")
    with ExitStack() as stack:

        def start(name: str, trials: int, *others: str) -> subprocess.Popen[bytes]:
            run = start_run(
                "--matrix", "quick", "-k", _CELL, "--jobs", "1",
                "--trials", str(trials), "--duration", str(_LOAD_S), *others,
                scratch=vm_scratch, results=folder / name, log=folder / f"{name}.log",
            )  # fmt: skip
            stack.callback(run.wait, 20)
            stack.callback(run.kill)
            return run

        yield _play(start, base=vm_scratch, folder=folder)


def _play(start: Start, *, base: Path, folder: Path) -> Story:
    doomed, other = folder / "doomed", folder / "other"
    doomed_run = start("doomed", trials=2)
    wait_for(
        lambda: truth(_records(doomed) or doomed_run.poll() is not None),
        what="first record",
        deadline_s=_DEADLINE_S,
    )
    other_run = start("other", trials=1)
    other_sandboxes = _wait_for_qemu(other_run, folder / "other.log")

    _kill_run(doomed_run, folder / "doomed.log")
    left = _scratch(doomed, base)
    was_left = left.exists()
    Scratch(base).remove_abandoned()  # what every start does first
    is_undisturbed = (
        _scratch(other, base).exists()
        and bool(commands_in(other_sandboxes))
        and other_run.poll() is None
    )

    _kill_worker(other_run, consoles=other, sandboxes=other_sandboxes)
    killed_records = _records(doomed)
    continued_run = start("doomed", 2, "--continue", str((doomed / "latest").resolve()))
    for run in (other_run, continued_run):
        run.wait(_DEADLINE_S)
    return Story(
        killed_left_scratch=was_left,
        scratch_after_next_start=left.exists(),
        killed_records=killed_records,
        continued_records=_records(doomed),
        other_was_disturbed=not is_undisturbed,
        other_records=_records(other),
    )


def _kill_run(run: subprocess.Popen[bytes], log: Path) -> None:
    """SIGKILL, amid a trial; return once all that it had started is gone."""
    sandboxes = _wait_for_qemu(run, log)
    for pid, command in commands_in(sandboxes).items():
        if command.startswith("python"):
            os.kill(pid, signal.SIGSTOP)  # a worker must not be what ends its sandbox
    os.kill(run.pid, signal.SIGKILL)
    run.wait(10)
    _wait_for_end(sandboxes)


def _kill_worker(run: subprocess.Popen[bytes], *, consoles: Path, sandboxes: set[Sandbox]) -> None:
    """SIGKILL, amid the first trial; return once its sandbox is gone."""
    # libvirt asks QEMU what it can do before the first trial: a QEMU alone is no trial
    wait_for(
        lambda: truth(list(consoles.glob("latest/trials/*/nas-1.console.log"))),
        what="first trial",
        deadline_s=_DEADLINE_S,
    )
    [worker] = children_of(run.pid)
    os.kill(worker, signal.SIGKILL)
    _wait_for_end(sandboxes)


def _wait_for_end(sandboxes: set[Sandbox]) -> None:
    wait_for(
        lambda: truth(not commands_in(sandboxes)),
        what=f"end of all in {sandboxes}",
        deadline_s=20,
    )


def _wait_for_qemu(run: subprocess.Popen[bytes], log: Path) -> set[Sandbox]:
    """The sandboxes of a run, once a QEMU lives in one."""

    def look() -> set[Sandbox] | None:
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


def test_a_killed_run_leaves_nothing_but_readable_records(story: Story) -> None:
    """That all of its processes end is waited for as the story is played."""
    assert {record.verdict for record in story.killed_records} == {Verdict.INTACT}
    assert story.killed_left_scratch, "the next start has to find it, or this test proves nothing"
    assert not story.scratch_after_next_start


def test_a_killed_run_disturbs_no_one(story: Story) -> None:
    assert not story.other_was_disturbed


def test_a_killed_run_goes_on_without_a_trial_missing_or_doubled(story: Story) -> None:
    [first, second] = story.continued_records
    assert (first,) == story.killed_records
    assert (second.verdict, second.dead_tries) == (Verdict.INTACT, 1)


def test_a_killed_worker_costs_one_try_of_its_trial(story: Story) -> None:
    [record] = story.other_records
    assert (record.verdict, record.dead_tries) == (Verdict.INTACT, 1)
