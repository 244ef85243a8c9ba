"""Scratch directories: what a killed process left is removed, what a living one uses is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT
from torture.errors import HarnessError
from torture.machines.host.scratch import Scratch

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
