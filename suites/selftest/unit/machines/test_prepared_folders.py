"""Folders that are prepared once: whole or not there, made by one process, removed when unused."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.files import locked
from torture.machines.lab import saved_states
from torture.machines.lab.saved_states import PreparedFolders

DAY_S = 86400


def content(folder: Path) -> None:
    (folder / "state").write_bytes(bytes(1000))


def age(folder: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    os.utime(folder, (then, then))


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


def test_others_wait_for_the_one_that_makes_it(tmp_path: Path) -> None:
    begun, go_on, made = threading.Event(), threading.Event(), []

    def make(folder: Path) -> None:
        begun.set()
        go_on.wait(10)
        made.append(folder)

    folders = PreparedFolders(tmp_path)
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


def test_one_that_could_not_be_made_is_not_there(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)

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


def test_a_folder_of_no_use_is_made_again(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)
    folders.ensure("a", make=content)
    folders.forget("a")
    assert not (tmp_path / "a").exists()
    folders.forget("a")
    assert folders.ensure("a", make=content).exists()


def test_folders_unused_for_long_are_removed_when_another_is_made(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)
    for key, days in (("old", 15.0), ("young", 13.0)):
        age(folders.ensure(key, make=content), days)
    folders.ensure("new", make=content)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"young", "new"}


def test_a_use_is_a_use(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)
    age(folders.ensure("old", make=content), 15)
    folders.ensure("old", make=content)
    assert folders.ensure("new", make=content).parent.joinpath("old").exists()


def test_the_last_used_stay_when_room_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_states, "_BYTES_MAX", 2500)
    folders = PreparedFolders(tmp_path)
    for key, days in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        age(folders.ensure(key, make=content), days)
    folders.ensure("new", make=content)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"a", "b", "new"}


def test_entries_in_use_stay(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)
    age(folders.ensure("old", make=content), 15)
    with locked(tmp_path / "old.lock", deadline_s=1):
        folders.ensure("new", make=content)
    assert (tmp_path / "old").exists()


def test_one_that_is_being_made_is_no_leftover(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)

    def make(folder: Path) -> None:
        folders.ensure("other", make=content)
        content(folder)

    assert (folders.ensure("new", make=make) / "state").exists()


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match="cannot write to"):
        PreparedFolders(tmp_path / "file").ensure("a", make=content)


def test_files_in_use_stay_when_another_trial_forgets_them(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)
    with folders.used("a", make=content) as used:
        folders.forget("a")
        assert (used / "state").read_bytes() == bytes(1000)
        with folders.used("a", make=content) as again:
            assert not again.joinpath("state").samefile(used / "state")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "a.lock"}


def test_files_forgotten_before_they_are_linked_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = PreparedFolders(tmp_path)
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


def test_links_of_a_killed_trial_are_removed_and_those_in_use_are_not(tmp_path: Path) -> None:
    folders = PreparedFolders(tmp_path)
    with folders.used("a", make=content) as killed, folders.used("a", make=content) as used:
        age(killed, 0.1)
        folders.ensure("b", make=content)
        assert used.exists()
        assert not killed.exists()
