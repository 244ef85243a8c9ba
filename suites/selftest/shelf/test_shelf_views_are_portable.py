"""The same view file gives the same bytes: on every export, twice, elsewhere, by plugin and reader.

A shelf turns: its disks become others while they stay attached, and forget what was written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbd
import pytest

from suites.selftest.shelf.golden import (
    DISK_BYTES,
    EXPECTED,
    FOLDER,
    Sums,
    exports_of,
    record,
    served,
    sums_of,
)
from suites.selftest.shelf.rig import Server, build, connected
from torture.errors import HarnessError
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    read_crash_state,
    write_crash_state,
)
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import (
    LOG,
    ImageSource,
    RecordedDisk,
    ViewSource,
    load_recording,
)
from torture.facts.recording.model import content
from torture.machines.shelf.server import Shelf


def read_by_the_specification(view_file: Path, name: str) -> bytes:
    """The content of a disk of a view, without the plugin; views below it are read in the same way."""

    @cache
    def holds(file: Path, disk: str) -> bytes:
        view = read_crash_state(file)
        recording = load_recording(view.recording)
        place = recording.place_of(disk)
        recorded = recording.disks[place]
        return content(
            below(recorded),
            recording.events,
            disk=place,
            sector=recorded.physical_sector,
            view=view.disks[disk],
            cut=view.cut,
            seed=view.seed,
            payload=lambda number: recording.payload(recording.events[number]),
        )

    def below(recorded: RecordedDisk) -> bytes:
        match recorded.source:
            case ViewSource(view=file, disk=disk):
                return holds(file, disk)
            case ImageSource(image=image):
                return image.read_bytes()
        return bytes(recorded.size)

    return holds(view_file, name)


def both(folder: Path) -> Sums:
    """The sums of all views in a folder, which plugin and specification agree on."""
    exports = exports_of(folder)
    contents = served(folder, exports)
    assert contents == {
        export: read_by_the_specification(folder / export.split(":")[0], export.split(":")[1])
        for export in contents
    }
    return sums_of(contents)


@pytest.fixture
def golden(folder: Path) -> Path:
    """A copy of the recording in the repository: opening a view leaves an index beside it."""
    shutil.copytree(FOLDER, folder / "g", copy_function=shutil.copyfile)
    return folder / "g"


def test_the_recording_in_the_repository_gives_the_bytes_it_gave(golden: Path) -> None:
    expected = json.loads((FOLDER / EXPECTED).read_text())
    assert len(expected) >= 12
    assert both(golden) == expected
    assert both(golden) == expected, "the second time, over the index that the first one left"


def test_the_recording_in_the_repository_has_all_policies_and_states(golden: Path) -> None:
    """Else its sums would say little."""
    views = [read_crash_state(path) for path in golden.glob("*.view.json")]
    assert {disk.policy for view in views for disk in view.disks.values()} == set(Policy)
    expected = json.loads((FOLDER / EXPECTED).read_text())
    assert len({sum_ for disks in expected.values() for sum_ in disks.values()}) >= 14
    assert any(event.in_flight > 1 for event in load_recording(golden / "life-1").events[-1:])


def test_the_order_and_company_of_exports_change_nothing(golden: Path) -> None:
    exports = exports_of(golden)
    together = served(golden, exports)
    assert served(golden, exports[::-1]) == together
    alone: dict[str, Any]
    for alone in exports[::5]:
        assert served(golden, [alone]) == {alone["name"]: together[alone["name"]]}


def test_a_folder_can_be_moved(folder: Path) -> None:
    """A recording made just now, on the view of which another one was made."""
    (folder / "here").mkdir()
    record(folder / "here")
    here = both(folder / "here")
    (folder / "far" / "away").mkdir(parents=True)
    there = folder / "far" / "away" / "t"
    shutil.move(folder / "here", there)
    assert both(there) == here
    for index in there.glob("*/index"):
        index.unlink()
    assert both(there) == here


def test_bytes_are_read_in_any_pieces(golden: Path) -> None:
    """Pages and sectors that a request begins or ends in are those of the whole."""
    exports = [each for each in exports_of(golden) if each["name"].startswith("torn")]
    whole = served(golden, exports)
    server = Server(build(), golden, "pieces", exports)
    for each in exports:
        line = server.line(each["name"])
        for length in (each["sector"], 3 * each["sector"], 5 * 4096):
            replies = [
                line.read(min(length, DISK_BYTES - start), start)
                for start in range(0, DISK_BYTES, length)
            ]
            assert b"".join(line.wait(reply).data() for reply in replies) == whole[each["name"]]
        del line
    server.stop()


_DISKS = (ShelfDisk(serial="d0", size_mib=1), ShelfDisk(serial="d1", size_mib=1))
_BESIDE = ShelfDisk(serial="beside", size_mib=1)
_BLOCK = 4096
_PLACES = 2


def _connected(shelf: Shelf, disk: ShelfDisk) -> nbd.NBD:
    return connected(shelf.socket, disk.serial)


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
