"""`kill -9` in the middle: nothing stays but readable records, and nobody else is touched.

Who is not touched is another user, without privileges where there can be one: who gets the same verdicts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from suites.selftest.machinery.processes import children_of, commands_in, powercut, sandboxes_of
from suites.selftest.machinery.stranger import Stranger, unprivileged_stranger
from torture.campaign.run import Run
from torture.checkout import CHECKOUT
from torture.deadlines import truth, wait_for
from torture.host.scratch import Scratch
from torture.record.run_layout import TRIALS_FILE
from torture.record.trials import TrialRecord, read_records
from torture.verdict.verdicts import Verdict

_CELL = "iscsi-always-noslog-btrfs-nasonly"
_ASKED = ("--matrix", "quick", "-k", _CELL, "--jobs", "1", "--trials", "50", "--duration", "2")
"""More trials than there is time for: both runs are ended amid them."""
_DEADLINE_S = 240
_QEMU = "qemu-system-x86"
_LIVING = "living"


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """Two runs: of both the worker was killed in the first trial, then one of them as a whole."""

    killed_left_scratch: bool
    """Before the next start; else what that one removes would prove nothing."""
    scratch_after_next_start: bool
    living_after_next_start: bool
    """The scratch of a run of the same user that goes on."""
    killed_records: tuple[TrialRecord, ...]
    other_is_unprivileged: bool
    other_was_disturbed: bool
    """Ended, or lost all of its processes, when the first run was killed."""
    other_verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A run of `pytest suites/powercut`, as a user starts it."""

    process: subprocess.Popen[bytes]
    results: Path
    log: Path


@pytest.fixture(scope="module")
def story(vm_scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with ExitStack() as stack:
        player = _Player(
            stack=stack,
            folder=tmp_path_factory.mktemp("leftovers"),
            base=vm_scratch,
            stranger=stack.enter_context(unprivileged_stranger()),
        )
        yield player.play()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Player:
    stack: ExitStack
    folder: Path
    base: Path
    """Of the scratch of runs of this user."""
    stranger: Stranger | None

    def play(self) -> Story:
        other = self._start_other()
        _wait_for_first_trial(other)
        _kill_worker(other)
        doomed = self._start("doomed")
        _wait_for_first_trial(doomed)
        _kill_worker(doomed)
        _wait_for_records(doomed, 1)
        other_sandboxes = _wait_for_qemu(other)
        scratch = Scratch(self.base)
        with scratch.directory(_LIVING) as living:
            _kill_run(doomed)
            left = scratch.home / Run(folder=_latest(doomed.results)).scratch_name
            was_left = left.exists()
            scratch.remove_abandoned()  # what every start does first
            living_after = living.exists()
        is_undisturbed = bool(commands_in(other_sandboxes)) and other.process.poll() is None
        _wait_for_records(other, 2)
        return Story(
            killed_left_scratch=was_left,
            scratch_after_next_start=left.exists(),
            living_after_next_start=living_after,
            killed_records=_records(doomed.results),
            other_is_unprivileged=self.stranger is not None,
            other_was_disturbed=not is_undisturbed,
            other_verdicts=tuple(record.verdict for record in _records(other.results)[:2]),
        )

    def _start_other(self) -> Started:
        if self.stranger is None:
            return self._start("other")
        home, log = self.stranger.home, self.folder / "other.log"
        arguments = powercut(*_ASKED, scratch=home, results=home / "results")
        with log.open("wb") as output:
            process = self.stranger.start(*arguments, output=output)
        return self._owned(Started(process=process, results=home / "results", log=log))

    def _start(self, name: str) -> Started:
        results, log = self.folder / name, self.folder / f"{name}.log"
        arguments = powercut(*_ASKED, scratch=self.base, results=results)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        return self._owned(Started(process=process, results=results, log=log))

    def _owned(self, run: Started) -> Started:
        self.stack.callback(run.process.wait, 20)
        self.stack.callback(run.process.kill)
        return run


def _kill_run(run: Started) -> None:
    """SIGKILL, amid a trial; return once all that it had started is gone."""
    sandboxes = _wait_for_qemu(run)
    for pid, command in commands_in(sandboxes).items():
        if command.startswith("python"):
            os.kill(pid, signal.SIGSTOP)  # a worker must not be what ends its sandbox
    run.process.kill()
    run.process.wait(10)
    _wait_for_end(sandboxes)


def _kill_worker(run: Started) -> None:
    """SIGKILL; return once its sandbox is gone."""
    sandboxes = sandboxes_of(run.process.pid)
    [worker] = children_of(run.process.pid)
    os.kill(worker, signal.SIGKILL)
    _wait_for_end(sandboxes)


def _wait_for_first_trial(run: Started) -> None:
    """Until a NAS of it has a console: libvirt asks QEMU what it can do before, and that is no trial."""

    def look() -> bool | None:
        assert run.process.poll() is None, run.log.read_text()
        return truth(list(run.results.glob("latest/trials/*/nas-1.console.log")))

    wait_for(look, what=f"NAS of a trial in {run.results}", deadline_s=_DEADLINE_S)


def _wait_for_records(run: Started, count: int) -> None:
    def look() -> bool | None:
        assert run.process.poll() is None, run.log.read_text()
        return truth(len(_records(run.results)) >= count)

    wait_for(look, what=f"{count} records in {run.results}", deadline_s=_DEADLINE_S)


def _wait_for_end(sandboxes: set[str]) -> None:
    wait_for(
        lambda: truth(not commands_in(sandboxes)),
        what=f"end of all in {sandboxes}",
        deadline_s=20,
    )


def _wait_for_qemu(run: Started) -> set[str]:
    """The sandboxes of a run, once a QEMU lives in one."""

    def look() -> set[str] | None:
        assert run.process.poll() is None, run.log.read_text()
        sandboxes = sandboxes_of(run.process.pid)
        return sandboxes if _QEMU in commands_in(sandboxes).values() else None

    return wait_for(look, what=f"QEMU of the run of {run.log}", deadline_s=_DEADLINE_S)


def _latest(results: Path) -> Path:
    return results / (results / "latest").readlink()


def _records(results: Path) -> tuple[TrialRecord, ...]:
    read = read_records(results / "latest" / TRIALS_FILE)
    assert read.unreadable_lines == 0
    return read.records


def test_a_killed_run_leaves_nothing_but_readable_records(story: Story) -> None:
    """That all of its processes end is waited for as the story is played."""
    assert {record.verdict for record in story.killed_records} == {Verdict.INCONCLUSIVE}
    assert story.killed_left_scratch, "the next start has to find it, or this test proves nothing"
    assert not story.scratch_after_next_start


def test_a_killed_run_disturbs_no_one(story: Story) -> None:
    assert not story.other_was_disturbed
    assert story.living_after_next_start


def test_a_killed_worker_costs_its_trial_and_no_more(story: Story) -> None:
    assert story.other_verdicts == (Verdict.INCONCLUSIVE, Verdict.INTACT)


def test_an_unprivileged_user_gets_the_same_verdicts(story: Story) -> None:
    if not story.other_is_unprivileged and os.geteuid() == 0:
        pytest.skip("nobody without privileges can have a sandbox here")
    assert story.other_verdicts[-1] is Verdict.INTACT
