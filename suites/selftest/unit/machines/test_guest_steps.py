"""A guest that starts: its first steps, the wait for its agent, and the reason of a death.

The client that checks is kept while it answers, and never for long.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import libvirt
import libvirt_qemu
import pytest

from suites.selftest.programs.launcher import run_program
from torture.errors import DeadlineExceeded, HarnessError
from torture.files import CHECKOUT
from torture.machines.lab import lab
from torture.machines.lab.agent import Agent
from torture.machines.lab.domains import disk_places
from torture.machines.lab.lab import Checkers
from torture.machines.lab.machine import Machine

STEPS = CHECKOUT / "vmimages" / "guest" / "files" / "usr" / "lib" / "torture" / "steps"
TRAP = """trap 'end_with $? "a command that no line above names"' EXIT"""


def init(*lines: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The output and exit status of process 1, with these lines after its functions."""
    script = "\n".join(["set -eu", f". {STEPS}", TRAP, *lines, "trap - EXIT"])
    search = os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}"
    return run_program("sh", "-c", script, PATH=search)


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


FIRST, SECOND = Path("first.log"), Path("second.log")


@dataclass
class Client:
    """A machine that was started with this console."""

    console: Path
    answers: bool = True
    commands: list[tuple[str, ...]] = field(default_factory=list)
    killed: bool = False

    def move_console(self, console_log: Path) -> None:
        self.console = console_log

    def must(self, *argv: str, deadline_s: float) -> None:
        if not self.answers:
            raise HarnessError("it is stuck")
        self.commands.append(argv)

    def kill(self) -> None:
        self.killed = True


@dataclass
class Started:
    """All clients that were ever started."""

    clients: list[Client] = field(default_factory=list)

    def start(self, console_log: Path) -> Machine:
        self.clients.append(Client(console_log))
        return cast(Machine, self.clients[-1])


def test_a_client_that_is_kept_is_the_next_trials_with_a_new_console_and_an_empty_log() -> None:
    started = Started()
    kept = Checkers(start=started.start)
    kept.keep(kept.take(console_log=FIRST))
    kept.take(console_log=SECOND)
    assert [client.console for client in started.clients] == [SECOND]
    assert started.clients[0].commands == [("dmesg", "--clear")] * 2


def test_a_new_client_has_an_empty_log_or_ends() -> None:
    """The words of its boot would look like trouble of the check: it would never be kept."""
    started = Started()
    Checkers(start=started.start).take(console_log=FIRST)
    assert started.clients[0].commands == [("dmesg", "--clear")]

    def start_stuck(console_log: Path) -> Machine:
        started.start(console_log)
        started.clients[-1].answers = False
        return cast(Machine, started.clients[-1])

    with pytest.raises(HarnessError, match="stuck"):
        Checkers(start=start_stuck).take(console_log=SECOND)
    assert started.clients[1].killed


def test_a_kept_checker_is_killed_at_the_end() -> None:
    started = Started()
    kept = Checkers(start=started.start)
    kept.keep(kept.take(console_log=FIRST))
    kept.end()
    assert started.clients[0].killed
    kept.take(console_log=SECOND)
    assert len(started.clients) == 2


def test_a_checker_that_was_not_returned_is_not_given_again() -> None:
    started = Started()
    kept = Checkers(start=started.start)
    assert kept.take(console_log=FIRST) is not kept.take(console_log=SECOND)
    assert len(started.clients) == 2


def test_one_that_does_not_answer_any_more_is_ended_and_replaced() -> None:
    started = Started()
    kept = Checkers(start=started.start)
    kept.keep(kept.take(console_log=FIRST))
    started.clients[0].answers = False
    kept.take(console_log=SECOND)
    assert [(client.console, client.killed) for client in started.clients] == [
        (SECOND, True),
        (SECOND, False),
    ]


def test_none_is_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "_CHECKER_TRIALS_MAX", 3)
    started = Started()
    kept = Checkers(start=started.start)
    for _ in range(7):
        kept.keep(kept.take(console_log=FIRST))
    assert [client.killed for client in started.clients] == [True, True, False]


def test_where_a_domain_has_disks_is_read_from_its_xml() -> None:
    xml = """<domain><devices><disk><target dev='vda' bus='virtio'/></disk>
    <disk><target dev='vdc'/></disk><interface><target dev='tap0'/></interface></devices></domain>"""
    assert disk_places(xml) == {"vda", "vdc"}
    assert not disk_places("<domain/>")
