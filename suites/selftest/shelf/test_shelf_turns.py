"""A shelf turns: its disks become others while they stay attached, and forget what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbd
import pytest

from torture.errors import HarnessError
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    write_crash_state,
)
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import LOG
from torture.machines.shelf.server import Shelf

_DISKS = (ShelfDisk(serial="d0", size_mib=1), ShelfDisk(serial="d1", size_mib=1))
_BESIDE = ShelfDisk(serial="beside", size_mib=1)
_BLOCK = 4096
_PLACES = 2


def _connected(shelf: Shelf, disk: ShelfDisk) -> nbd.NBD:
    handle = nbd.NBD()
    handle.set_export_name(disk.serial)
    handle.connect_unix(str(shelf.socket))
    return handle


def _held(handle: nbd.NBD) -> str:
    """A letter for each block."""
    return bytes(handle.pread(_BLOCK * _PLACES, 0)[::_BLOCK]).replace(b"\0", b"-").decode()


def _states(recorded: Shelf, folder: Path) -> list[Path]:
    """Without any unflushed write, with the first one, with both: by disk."""
    files = []
    for number, survivors in enumerate(((), (1,), (1, 3))):
        state = CrashState(
            recording=recorded.recording,
            cut=4,
            seed=0,
            disks={
                disk.serial: DiskState(
                    policy=Policy.EXPLICIT,
                    survivors=tuple(one for one in survivors if (one == 1) == (place == 0)),
                )
                for place, disk in enumerate(_DISKS)
            },
        )
        files.append(folder / f"{number}.view.json")
        write_crash_state(files[-1], state)
    return files


@pytest.fixture
def turning(folder: Path) -> Iterator[tuple[Shelf, list[Path]]]:
    recorded = Shelf(directory=folder / "recorded", socket=folder / "r")
    recorded.start(_DISKS)
    for disk, letter in zip(_DISKS, (b"a", b"b"), strict=True):
        _connected(recorded, disk).pwrite(letter * _BLOCK, 0)
    recorded.stop()
    states = _states(recorded, folder)
    shelf = Shelf(directory=folder / "turning", socket=folder / "t")
    shelf.start(_DISKS, view=states[0], beside=(_BESIDE,), keeps_recording=False)
    yield shelf, states
    shelf.stop()


def _turn(shelf: Shelf, state: Path) -> None:
    shelf.turn([disk.serial for disk in _DISKS], state)


def test_an_attached_disk_becomes_another(turning: tuple[Shelf, list[Path]]) -> None:
    shelf, states = turning
    first, second = (_connected(shelf, disk) for disk in _DISKS)
    seen = []
    for number in (0, 1, 2, 0):
        _turn(shelf, states[number])
        seen.append((_held(first), _held(second)))
    assert seen == [("--", "--"), ("a-", "--"), ("a-", "b-"), ("--", "--")]


def test_writes_are_forgotten(turning: tuple[Shelf, list[Path]]) -> None:
    """Also those to disks that keep their content: the log begins anew, and takes no room."""
    shelf, states = turning
    handle, beside = _connected(shelf, _DISKS[0]), _connected(shelf, _BESIDE)
    for _ in range(3):
        handle.pwrite(b"x" * _BLOCK, _BLOCK)
        beside.pwrite(b"y" * _BLOCK, 0)
        assert (_held(handle)[1], _held(beside)) == ("x", "y-")
        _turn(shelf, states[1])
        beside.pwrite(b"z" * _BLOCK, 0)  # where the log had the first write
        assert (_held(handle), _held(beside)) == ("a-", "z-")
        _turn(shelf, states[1])
    assert shelf.control.status().seq == 0


def test_a_senseless_turn_is_refused(turning: tuple[Shelf, list[Path]], folder: Path) -> None:
    """And changes nothing: all contents are opened before the first disk turns."""
    shelf, states = turning
    handle = _connected(shelf, _DISKS[0])
    _turn(shelf, states[1])
    handle.pwrite(b"x" * _BLOCK, _BLOCK)
    missing = {"view": str(folder / "missing.view.json"), "disk": "d1"}
    for turn in (
        {"d2": {"view": str(states[0]), "disk": "d0"}},
        {"d0": {"view": str(states[0]), "disk": "d0"}, "d1": missing},
    ):
        with pytest.raises(HarnessError):
            shelf.control.turn(turn)
    assert _held(handle) == "ax"


def test_a_recording_that_is_kept_is_never_forgotten(folder: Path) -> None:
    shelf = Shelf(directory=folder / "recorded", socket=folder / "r")
    shelf.start(_DISKS)
    try:
        handle = _connected(shelf, _DISKS[0])
        handle.pwrite(b"a" * _BLOCK, 0)
        image = folder / "image"
        image.write_bytes(bytes(1 << 20))
        with pytest.raises(HarnessError):
            shelf.control.turn({"d0": {"image": str(image)}})
        assert _held(handle) == "a-"
    finally:
        shelf.stop()
    assert (shelf.recording / LOG).stat().st_size > 0
