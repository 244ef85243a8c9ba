"""The scratch disk of a run, and one that is full."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from torture.errors import HarnessError
from torture.files import CHECKOUT
from torture.machines.host.scratch import Scratch
from torture.machines.lab.agent import Agent
from torture.machines.lab.ledger_server import LedgerServer
from torture.machines.lab.machine import Machine
from torture.machines.shelf.control import ShelfStatus
from torture.machines.shelf.server import Shelf
from torture.trials.trial.shared.machines import Machines

HOLDS_ONE = """
import sys
from pathlib import Path
from torture.machines.host.scratch import Scratch
with Scratch(Path(sys.argv[1])).directory(sys.argv[2]) as path:
    (path / "disk").write_bytes(b"data")
    print(path, flush=True)
    sys.stdin.read()
"""


@contextmanager
def owner(base: Path, name: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process with a scratch directory, which it keeps until its stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_ONE, str(base), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_only_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        killed, abandoned = stack.enter_context(owner(tmp_path, "killed"))
        _, used = stack.enter_context(owner(tmp_path, "living"))
        assert (abandoned / "disk").exists()
        scratch = Scratch(tmp_path)
        assert scratch.remove_abandoned() == []
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait(timeout=10)
        assert (abandoned / "disk").exists(), "no process tidied up for it"
        assert scratch.remove_abandoned() == [abandoned]
        assert not abandoned.exists()
        assert (used / "disk").read_bytes() == b"data"


def test_leftovers_in_the_former_best_place_of_scratch_are_removed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leftovers of a killed run in memory leave too little of it for the next one."""
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    monkeypatch.setattr("torture.machines.host.scratch._SHARED_MEMORY", memory)
    monkeypatch.setattr("torture.machines.host.scratch._DISK", disk)
    monkeypatch.setattr("torture.machines.host.scratch.default_base", lambda: disk)
    with ExitStack() as stack:
        killed, abandoned = stack.enter_context(owner(memory, "killed"))
        _, used = stack.enter_context(owner(memory, "living"))
        killed.kill()
        killed.wait(timeout=10)
        assert Scratch(tmp_path / "own").remove_abandoned() == []
        assert Scratch().remove_abandoned() == [abandoned]
        assert (used / "disk").read_bytes() == b"data"
        assert Scratch().home.parent == disk


def test_a_directory_goes_with_its_owner(tmp_path: Path) -> None:
    with owner(tmp_path, "orderly") as (process, path):
        assert path.is_dir()
        process.communicate(timeout=10)
        assert process.returncode == 0
        assert not path.exists()


def test_ones_own_directory_is_not_abandoned(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    with scratch.directory("mine") as path:
        assert path.stat().st_mode & 0o777 == 0o700
        assert Scratch(tmp_path).remove_abandoned() == []
        assert path.is_dir()
    assert not path.exists()
    assert scratch.home.stat().st_mode & 0o777 == 0o700


def test_a_directory_is_removed_when_its_block_raises(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Scratch(tmp_path).directory("mine") as path:
        raise KeyError
    assert not path.exists()


def test_a_directory_without_a_lock_was_left_in_the_making(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    scratch.remove_abandoned()
    (scratch.home / "half").mkdir()
    (scratch.home / "a-file").touch()
    assert scratch.remove_abandoned() == [scratch.home / "half"]
    assert (scratch.home / "a-file").exists()


def test_a_name_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    with (
        scratch.directory("same"),
        pytest.raises(HarnessError, match="--scratch"),
        scratch.directory("same"),
    ):
        pass


def test_a_base_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(HarnessError, match="--scratch"):
        Scratch(file).remove_abandoned()


def test_a_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may make `torture-1000` in a shared folder; one's disks must not land in there."""
    someone_else = os.getuid() + 1
    monkeypatch.setattr("torture.machines.host.scratch.os.getuid", lambda: someone_else)
    scratch = Scratch(tmp_path)
    scratch.home.mkdir()
    (scratch.home / "theirs").mkdir()
    with pytest.raises(HarnessError, match="another user"):
        scratch.remove_abandoned()
    with pytest.raises(HarnessError, match="another user"), scratch.directory("mine"):
        pass
    assert (scratch.home / "theirs").is_dir()
    assert not (scratch.home / "mine").exists()


# A scratch disk that is full is noticed by whoever waits, and said without a contradiction.

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
