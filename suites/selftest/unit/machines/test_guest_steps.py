"""A guest that cannot start names the failed command on its console; a short wait of udev is none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT

STEPS = CHECKOUT / "vmimages" / "guest" / "files" / "usr" / "lib" / "torture" / "steps"
TRAP = """trap 'end_with $? "a command that no line above names"' EXIT"""


def init(*lines: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The output and exit status of process 1, with these lines after its functions."""
    script = "\n".join(["set -eu", f". {STEPS}", TRAP, *lines, "trap - EXIT"])
    search = os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script],
        env={**os.environ, "PATH": search},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Without the guest's time."""
    return done.stdout.splitlines()[-1].split(" s: ", 1)[1]


def test_the_trap_is_that_of_the_guests() -> None:
    assert TRAP in (STEPS.parents[2] / "sbin" / "torture-init").read_text()


def test_a_command_that_fails_is_the_last_line_with_its_exit_code() -> None:
    done = init("must true", "must sh -c 'echo why; exit 7' zfs", "echo on")
    assert done.returncode == 7
    assert last_line(done) == "exit code 7 of: sh -c echo why; exit 7 zfs"
    assert done.stdout.splitlines()[0] == "why"


def test_a_command_that_is_no_step_is_noticed_too() -> None:
    done = init("false", "echo on")
    assert done.returncode == 1
    assert last_line(done) == "exit code 1 of: a command that no line above names"


@pytest.mark.parametrize(("failures", "code"), [(0, 0), (2, 0), (3, 1)])
def test_a_wait_for_udev_that_fails_is_tried_again_and_not_for_ever(
    tmp_path: Path, failures: int, code: int
) -> None:
    udevadm = tmp_path / "udevadm"
    asked = tmp_path / "asked"
    udevadm.write_text(f'#!/bin/sh\necho >> {asked}\n[ "$(wc -l < {asked})" -gt {failures} ]\n')
    udevadm.chmod(0o755)
    done = init("must settle_udev", path=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.count("it waits again") == min(failures, 2)
    assert asked.read_text().count("\n") == min(failures + 1, 3)
