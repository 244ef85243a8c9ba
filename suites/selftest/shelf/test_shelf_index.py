"""The index that opens a view quickly is made once for a recording. A stale one is not believed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from suites.selftest.shelf.forge import forge, writes_one_by_one
from suites.selftest.shelf.rig import Server, build, disk, of_view
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.events import load_recording
from torture.facts.recording.model import content

WRITES = 20_000
SIZE = 1 << 20
LENGTH = 512
HEADER_BYTES = 40


def recorded(folder: Path, writes: int) -> Path:
    """A recording of so many writes to one disk."""
    events, payloads = writes_one_by_one(writes, size=SIZE, length=LENGTH)
    forge(folder / "life", [disk("d0", size=SIZE)], events, payloads)
    return folder / "life"


def shown(folder: Path, cut: int) -> bytes:
    """The disk, cut there; has to be what the specification says."""
    view = {"schema": 1, "recording": "life", "cut": cut, "disks": {"d0": {"policy": "all"}}}
    (folder / "cut.view.json").write_text(json.dumps(view))
    server = Server(
        build(), folder, "s",
        [disk("d0", size=SIZE, source=of_view("cut.view.json", "d0"))],
    )  # fmt: skip
    held = server.contents({"d0": SIZE})["d0"]
    server.stop()
    recording = load_recording(folder / "life")
    data = (folder / "life" / "data").read_bytes()

    def payload(number: int) -> bytes:
        at = recording.events[number].reference
        return data[at : at + LENGTH]

    assert held == content(
        bytes(SIZE),
        recording.events,
        disk=0,
        sector=512,
        view=DiskState(policy=Policy.ALL),
        cut=cut,
        seed=0,
        payload=payload,
    )
    return held


def identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def test_the_index_is_made_once(folder: Path) -> None:
    index = recorded(folder, WRITES) / "index"
    shown(folder, 2 * WRITES)
    made = identity(index)
    shown(folder, 2 * WRITES)
    shown(folder, WRITES)
    assert identity(index) == made


def test_a_recording_that_grew_gets_another_one(folder: Path) -> None:
    index = recorded(folder, 100) / "index"
    before = shown(folder, 200)
    made = identity(index)
    recorded(folder, 300)
    assert shown(folder, 600) != before
    assert identity(index) != made
    assert shown(folder, 200) == before


@pytest.mark.parametrize("length", [0, 7, HEADER_BYTES, 5000])
def test_an_index_that_was_not_written_whole_is_made_again(length: int, folder: Path) -> None:
    index = recorded(folder, 500) / "index"
    shown(folder, 1000)
    whole = index.read_bytes()
    assert len(whole) > 5000
    os.truncate(index, length)
    shown(folder, 1000)
    assert index.read_bytes() == whole


def test_an_index_of_another_recording_is_made_again(folder: Path) -> None:
    """The folder's recording was replaced by one with as many events."""
    life = recorded(folder, 500)
    shown(folder, 1000)
    events, payloads = writes_one_by_one(500, size=SIZE, length=2 * LENGTH)
    forge(life, [disk("d0", size=SIZE)], events, payloads)
    view = {"schema": 1, "recording": "life", "cut": 2, "disks": {"d0": {"policy": "all"}}}
    (folder / "cut.view.json").write_text(json.dumps(view))
    source = of_view("cut.view.json", "d0")
    server = Server(build(), folder, "other", [disk("d0", size=SIZE, source=source)])
    held = server.contents({"d0": SIZE})["d0"]
    server.stop()
    assert held == payloads[1] + bytes(SIZE - 2 * LENGTH)
