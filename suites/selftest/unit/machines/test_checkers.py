"""The client that checks is kept while it answers, and never for long."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from torture.errors import HarnessError
from torture.machines.lab import lab
from torture.machines.lab.domains import disk_places
from torture.machines.lab.lab import Checkers
from torture.machines.lab.machine import Machine

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
