"""A scratch disk that is full is noticed by whoever waits, and said without a contradiction."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from torture.errors import HarnessError
from torture.machines.client.ledger_server import LedgerServer
from torture.machines.lab.agent import Agent
from torture.machines.lab.machine import Machine
from torture.machines.shelf.control import ShelfStatus
from torture.machines.shelf.server import Shelf
from torture.trials.trial.shared.machines import Machines

MIB = 1 << 20
_LONG_S = 60.0
_SOON_S = 5.0


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A shelf that runs, and has failed nothing."""
    made = Shelf(directory=tmp_path, socket=tmp_path / "s")
    cast("Any", made)._server = SimpleNamespace(exit_code=None)
    has_failed(made, 0, "")
    return made


def has_failed(shelf: Shelf, errors: int, last_error: str) -> None:
    """It says so from now on."""
    status = ShelfStatus(frozen=False, seq=1, errors=errors, last_error=last_error)
    cast("Any", shelf)._control = SimpleNamespace(status=lambda: status)


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Leave so many bytes free."""

    def filled(free: int) -> None:
        usage = SimpleNamespace(total=1 << 40, used=0, free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)

    return filled


def agent_of(shelf: Shelf) -> Agent:
    """The agent of a machine that a trial with this shelf owns."""
    agent = Agent(domain=None, vm="nas", raise_if_dead=lambda: None)
    machines = cast("Machines", SimpleNamespace(shelf=shelf, all=[]))
    Machines.own(machines, cast("Machine", SimpleNamespace(agent=agent)))
    return agent


def test_a_wait_for_a_machine_ends_at_once(shelf: Shelf, fill: Callable[[int], None]) -> None:
    fill(3 * MIB)
    agent, begun_s = agent_of(shelf), time.monotonic()
    for wait in (
        lambda: agent.wait_until_up(deadline_s=_LONG_S),
        lambda: agent.run(("true",), deadline_s=_LONG_S),
    ):
        with pytest.raises(HarnessError, match="has no room for the NAS's writes: 3 MiB"):
            wait()
    assert time.monotonic() - begun_s < _SOON_S


def test_a_wait_for_the_ledger_ends_at_once(
    tmp_path: Path, shelf: Shelf, fill: Callable[[int], None]
) -> None:
    fill(0)
    ledger = LedgerServer(
        client_socket=tmp_path / "port", file=tmp_path / "ledger", clock_ms=lambda: 0.0,
        must_go_on=shelf.require_room,
    )  # fmt: skip
    begun_s = time.monotonic()
    with pytest.raises(HarnessError, match="has no room"):
        ledger.wait_until(lambda: False, deadline_s=_LONG_S)
    assert time.monotonic() - begun_s < _SOON_S
    assert ledger.wait_until(lambda: True, deadline_s=_LONG_S), "what came, came"
    ledger.close()


def test_a_shelf_that_is_frozen_for_good_needs_no_room(
    shelf: Shelf, fill: Callable[[int], None]
) -> None:
    cast("Any", shelf)._server = None
    fill(0)
    shelf.require_room()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_that_is_there_again_is_no_contradiction(
    code: int, shelf: Shelf, fill: Callable[[int], None]
) -> None:
    fill(5000 * MIB)
    shelf.require_healthy()
    has_failed(shelf, 7, f"pwrite: {os.strerror(code)}")
    with pytest.raises(HarnessError, match="had no room for the NAS's writes") as raised:
        shelf.require_healthy()
    assert "MiB" not in str(raised.value)
    assert "failed 7 requests" in str(raised.value)


def test_an_error_without_a_lack_of_room_advises_no_space(
    shelf: Shelf, fill: Callable[[int], None]
) -> None:
    fill(5000 * MIB)
    has_failed(shelf, 1, "pread: Input/output error")
    with pytest.raises(HarnessError, match="failed 1 requests") as raised:
        shelf.require_healthy()
    assert "space" not in str(raised.value)
