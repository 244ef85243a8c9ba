"""The same view file gives the same bytes: on every export, twice, elsewhere, by plugin and reader."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

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
from suites.selftest.shelf.rig import Server, build
from torture.facts.recording.crash_state import Policy, read_crash_state
from torture.facts.recording.events import ImageSource, RecordedDisk, ViewSource, load_recording
from torture.facts.recording.model import content


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
