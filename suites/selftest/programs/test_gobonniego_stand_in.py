"""The whole path of a program that a user brings, on this host: brought in, run again and again, read."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from suites.selftest.programs import gobonniego_stand_in
from torture.choices.workloads.gobonniego import Gobonniego, GobonniegoLoad
from torture.choices.workloads.protocol import Brought, Command, Place, Surroundings
from torture.facts.evidence.folder import Completed
from torture.oracles.verdict.applications.gobonniego_output import parse_runs

STAND_IN = Path(__file__).with_name("gobonniego_stand_in.py")
WORKLOAD = Gobonniego()
RUNS_DEADLINE_S = 20
PANICKING = """#!/usr/bin/env python3
import sys
print("panic: it is another", file=sys.stderr)
sys.exit(2)
"""
"""In the stand-in's language: an interpreter that has just begun reads the file that is there."""


class ThisHost:
    """Commands as the guest's agent runs them; `/run` is a folder of the test's own."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._started: dict[int, subprocess.Popen[str]] = {}

    def put_program(self, path: str, content: bytes) -> None:
        target = Path(self._here(path))
        target.write_bytes(content)
        target.chmod(0o755)

    def _here(self, word: str) -> str:
        return word.replace("/run/", f"{self._run}/")

    def start(self, argv: Command) -> int:
        process = subprocess.Popen(
            [self._here(word) for word in argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started[process.pid] = process
        return process.pid

    def poll(self, pid: int, argv: Command) -> Completed | None:
        if self._started[pid].poll() is None:
            return None
        return self.finish(pid, argv, deadline_s=0)

    def finish(self, pid: int, argv: Command, *, deadline_s: float) -> Completed:
        stdout, stderr = self._started[pid].communicate(timeout=deadline_s + 1)
        code = self._started[pid].returncode
        return Completed(
            vm="here", argv=argv, exit_code=code, stdout=stdout, stderr=stderr, duration_ms=1
        )


class Scene:
    """A load of the stand-in, in a folder."""

    def __init__(self, base: Path) -> None:
        self.run, mounted = base / "run", base / "mounted"
        self.run.mkdir()
        mounted.mkdir()
        self.guest = ThisHost(self.run)
        self.kept: list[Completed] = []
        own = Brought(load=WORKLOAD.name, path=str(STAND_IN), sha256="")
        self.job = WORKLOAD.job(seed=1, place=Place(directory=str(mounted), brought=(own,)))
        self.directory = Path(self.job["directory"])
        subprocess.run(WORKLOAD.prepare(self.job), shell=True, check=True)

    def started(self) -> GobonniegoLoad:
        surroundings = Surroundings(
            guest=self.guest,
            open_ledger=lambda: pytest.fail("it keeps no ledger"),
            keep=self.kept.append,
            content_of=lambda brought: Path(brought.path).read_bytes(),
        )
        return WORKLOAD.start(self.job, surroundings)

    def read(self) -> str:
        argv = WORKLOAD.read_back(self.job)
        return self.guest.finish(self.guest.start(argv), argv, deadline_s=10).stdout


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_stand_in_fills_the_size_that_it_is_given(tmp_path: Path) -> None:
    done = gobonniego_stand_in.run(tmp_path, threads=2, size_bytes=2 << 20, duration_s=0.01)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == {"bonnie.0": 1 << 20, "bonnie.1": 1 << 20}
    assert min(done.values()) > 0


def test_it_runs_again_and_again_until_it_is_stopped(scene: Scene) -> None:
    load = scene.started()
    assert len(parse_runs(scene.kept[0].stdout)) == 1
    end = time.monotonic() + RUNS_DEADLINE_S
    while not list(scene.directory.glob("gobonniego/bonnie.1")):
        assert time.monotonic() < end, "it never ran again"
        time.sleep(0.001)
    load.raise_if_over()
    load.finish(deadline_s=RUNS_DEADLINE_S)
    assert scene.kept[1].exit_code == 0
    assert len(parse_runs(scene.kept[1].stdout)) >= 1
    assert scene.read() == "complete\n"


def test_the_files_it_leaves_are_read_to_the_end(scene: Scene) -> None:
    left = scene.directory / "gobonniego"
    left.mkdir()
    (left / "bonnie.0").write_bytes(b"left")
    assert scene.read() == "read ./bonnie.0\ncomplete\n"


@pytest.mark.parametrize(("tool", "said"), [("cat", "$1"), ("find", "./below")])
def test_files_that_cannot_be_read_or_listed_are_reported(
    tool: str, said: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = scene.directory / "gobonniego"
    left.mkdir()
    (left / "bonnie.0").write_bytes(b"left")
    failing = scene.run / tool
    failing.write_text(f'#!/bin/sh\necho "{tool}: {said}: Input/output error" >&2\nexit 1\n')
    failing.chmod(0o755)
    monkeypatch.setenv("PATH", str(scene.run), prepend=os.pathsep)
    place = said.replace("$1", "./bonnie.0")
    assert scene.read() == f"failed {tool}: {place}: Input/output error\ncomplete\n"


def test_a_folder_that_cannot_be_entered_is_said(scene: Scene) -> None:
    """A link to itself stands for one: the tests may run as root, who enters every folder."""
    left = scene.directory / "gobonniego"
    left.symlink_to(left)
    assert scene.read() == f"failed {left}: it cannot be entered\ncomplete\n"


def panics(scene: Scene) -> None:
    """From its next run on."""
    panicking = scene.run / "another"
    panicking.write_text(PANICKING)
    panicking.chmod(0o755)
    panicking.rename(scene.run / "gobonniego")


def ended(scene: Scene, look: Callable[[], object]) -> Completed:
    end = time.monotonic() + RUNS_DEADLINE_S
    while len(scene.kept) == 1:
        assert time.monotonic() < end, "it never ended"
        look()
    return scene.kept[1]


def test_its_results_from_before_its_client_dies_are_kept(scene: Scene) -> None:
    load = scene.started()
    load.take_ending()
    assert len(scene.kept) == 1, "it still runs"
    panics(scene)
    ended(scene, load.take_ending)
    load.take_ending()
    assert [done.exit_code for done in scene.kept] == [0, 2]


def test_one_that_panics_ends_with_its_own_words(scene: Scene) -> None:
    load = scene.started()
    panics(scene)
    done = ended(scene, load.raise_if_over)
    assert (done.exit_code, done.stderr) == (2, "panic: it is another\n")
