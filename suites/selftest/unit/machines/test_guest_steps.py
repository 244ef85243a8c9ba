"""A guest that starts: its first steps, the wait for its agent, and the reason of a death."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import libvirt
import libvirt_qemu
import pytest

from torture.errors import DeadlineExceeded, HarnessError
from torture.files import CHECKOUT
from torture.machines.lab.agent import Agent

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


# The wait for a guest agent: it asks again at once, and finds the reason of a death.

_NOT_CONNECTED = "Guest agent is not responding: QEMU guest agent is not connected"
_GONE = "Requested operation is not valid: domain is not running"
_GRACE_S = 1.0

Answers = Callable[..., None]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Let libvirt refuse with these words, one after the other, and then answer."""

    def use(*refusals: str) -> None:
        left: Iterator[str] = iter(refusals)

        def command(*_: object) -> str:
            for refusal in left:
                raise libvirt.libvirtError(refusal)
            return json.dumps({"return": {}})

        monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", command)

    return use


def agent(raise_if_dead: Callable[[], None] = lambda: None) -> Agent:
    """The agent of a guest that is dead if the function says so."""
    return Agent(domain=None, vm="nas", raise_if_dead=raise_if_dead)


def test_a_resumed_guest_is_asked_again_at_once(answers: Answers) -> None:
    answers(_NOT_CONNECTED, _NOT_CONNECTED)
    begun_s = time.monotonic()
    agent().wait_until_up(deadline_s=30)
    assert time.monotonic() - begun_s < _GRACE_S / 2


def test_a_guest_that_never_answers_is_late(answers: Answers) -> None:
    answers(*[_NOT_CONNECTED] * 1000)
    with pytest.raises(DeadlineExceeded, match=r"agent of nas did not answer within 0\.2 s"):
        agent().wait_until_up(deadline_s=0.2)


def shown_late() -> Callable[[], None]:
    """A look for a death that finds it only after some looks: the socket closes before QEMU ends."""
    looks = iter(range(1000))

    def raise_if_dead() -> None:
        if next(looks) > 3:
            raise HarnessError("its kernel crashed")

    return raise_if_dead


@pytest.mark.parametrize("refusal", [_NOT_CONNECTED, _GONE])
def test_a_death_is_the_reason_although_it_shows_late(answers: Answers, refusal: str) -> None:
    answers(*[refusal] * 1000)
    with pytest.raises(HarnessError, match="its kernel crashed"):
        agent(shown_late()).wait_until_up(deadline_s=30)
    with pytest.raises(HarnessError, match="its kernel crashed"):
        agent(shown_late()).call("guest-ping")
