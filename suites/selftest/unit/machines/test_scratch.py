"""The scratch disk of a run, and one that is full.

Folders that are prepared once: whole or not there, made by one process, removed when unused.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from torture.errors import HarnessError
from torture.files import CHECKOUT, locked
from torture.machines.host.scratch import Scratch
from torture.machines.lab import saved_states
from torture.machines.lab.agent import Agent
from torture.machines.lab.ledger_server import LedgerServer
from torture.machines.lab.machine import Machine
from torture.machines.lab.saved_states import PreparedFolders
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


DAY_S = 86400


def content(folder: Path) -> None:
    (folder / "state").write_bytes(bytes(1000))


def age(folder: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    os.utime(folder, (then, then))


@pytest.fixture
def folders(tmp_path: Path) -> PreparedFolders:
    return PreparedFolders(tmp_path)


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        content(folder)

    folders = PreparedFolders(tmp_path / "prepared")
    first, second = folders.ensure("a", make=make), folders.ensure("a", make=make)
    assert first == second
    assert len(made) == 1
    assert (first / "state").read_bytes() == bytes(1000)
    assert (tmp_path / "prepared").stat().st_mode & 0o777 == 0o700


def test_others_wait_for_the_one_that_makes_it(folders: PreparedFolders) -> None:
    begun, go_on, made = threading.Event(), threading.Event(), []

    def make(folder: Path) -> None:
        begun.set()
        go_on.wait(10)
        made.append(folder)

    threads = [
        threading.Thread(target=folders.ensure, args=("a",), kwargs={"make": make}) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(made) == 1


def test_one_that_could_not_be_made_is_not_there(tmp_path: Path, folders: PreparedFolders) -> None:

    def fail(folder: Path) -> None:
        content(folder)
        raise HarnessError("the client does not come up")

    with pytest.raises(HarnessError, match="does not come up"):
        folders.ensure("a", make=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a.lock"]


def test_leftovers_of_a_killed_maker_are_removed(tmp_path: Path) -> None:
    for key in "ab":
        (tmp_path / f".{key}.partial").mkdir()
        (tmp_path / f".{key}.partial" / "half").touch()
    folder = PreparedFolders(tmp_path).ensure("a", make=content)
    assert [path.name for path in folder.iterdir()] == ["state"]
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"a"}


def test_a_folder_of_no_use_is_made_again(tmp_path: Path, folders: PreparedFolders) -> None:
    folders.ensure("a", make=content)
    folders.forget("a")
    assert not (tmp_path / "a").exists()
    folders.forget("a")
    assert folders.ensure("a", make=content).exists()


def test_folders_unused_for_long_are_removed_when_another_is_made(
    tmp_path: Path, folders: PreparedFolders
) -> None:
    for key, days in (("old", 15.0), ("young", 13.0)):
        age(folders.ensure(key, make=content), days)
    folders.ensure("new", make=content)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"young", "new"}


def test_a_use_is_a_use(folders: PreparedFolders) -> None:
    age(folders.ensure("old", make=content), 15)
    folders.ensure("old", make=content)
    assert folders.ensure("new", make=content).parent.joinpath("old").exists()


def test_the_last_used_stay_when_room_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: PreparedFolders
) -> None:
    monkeypatch.setattr(saved_states, "_BYTES_MAX", 2500)
    for key, days in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        age(folders.ensure(key, make=content), days)
    folders.ensure("new", make=content)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"a", "b", "new"}


def test_entries_in_use_stay(tmp_path: Path, folders: PreparedFolders) -> None:
    age(folders.ensure("old", make=content), 15)
    with locked(tmp_path / "old.lock", deadline_s=1):
        folders.ensure("new", make=content)
    assert (tmp_path / "old").exists()


def test_one_that_is_being_made_is_no_leftover(folders: PreparedFolders) -> None:

    def make(folder: Path) -> None:
        folders.ensure("other", make=content)
        content(folder)

    assert (folders.ensure("new", make=make) / "state").exists()


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match="cannot write to"):
        PreparedFolders(tmp_path / "file").ensure("a", make=content)


def test_files_in_use_stay_when_another_trial_forgets_them(
    tmp_path: Path, folders: PreparedFolders
) -> None:
    with folders.used("a", make=content) as used:
        folders.forget("a")
        assert (used / "state").read_bytes() == bytes(1000)
        with folders.used("a", make=content) as again:
            assert not again.joinpath("state").samefile(used / "state")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "a.lock"}


def test_files_forgotten_before_they_are_linked_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: PreparedFolders
) -> None:
    ensure, forgotten = folders.ensure, [True, True, False]

    def ensured(key: str, *, make: Callable[[Path], None]) -> Path:
        folder = ensure(key, make=make)
        if forgotten.pop(0):
            folders.forget(key)
        return folder

    monkeypatch.setattr(folders, "ensure", ensured)
    with folders.used("a", make=content) as used:
        assert (used / "state").exists()
    forgotten[:] = [True] * 3
    with pytest.raises(HarnessError, match="cannot be used"), folders.used("a", make=content):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"a.lock"}


def test_links_of_a_killed_trial_are_removed_and_those_in_use_are_not(
    folders: PreparedFolders,
) -> None:
    with folders.used("a", make=content) as killed, folders.used("a", make=content) as used:
        age(killed, 0.1)
        folders.ensure("b", make=content)
        assert used.exists()
        assert not killed.exists()
