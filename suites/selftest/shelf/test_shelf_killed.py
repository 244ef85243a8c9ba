"""A shelf that is killed or cannot start: what it acknowledged, or its reason, can be read."""

from __future__ import annotations

import json
import random
import shutil
import time
from pathlib import Path

import pytest

from suites.selftest.shelf.requests import payload
from suites.selftest.shelf.rig import Reply, Server, build, disk, of_view
from torture.errors import HarnessError
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import LOG, RECORD_BYTES, Kind, load_recording, read_events
from torture.machines.shelf.server import Shelf

DISK_BYTES = 1 << 20
LENGTH = 4096


@pytest.mark.parametrize("seed", range(5))
def test_every_acknowledged_write_is_there(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    disks = [disk("d0", size=DISK_BYTES, profile={"write_us": 100})]
    server = Server(build(), folder, "s", disks, recording="life")
    line = server.line("d0")
    end = time.monotonic() + rng.uniform(0.005, 0.08)
    writes: list[tuple[int, Reply]] = []
    while time.monotonic() < end:
        for _ in range(16):
            number = len(writes)
            place = number * LENGTH % DISK_BYTES
            writes.append((number, line.write(payload(number, LENGTH), place)))
        for _, reply in writes[-32:]:
            line.has_ended(reply)
    server.kill()
    acknowledged = {number for number, reply in writes if reply.has_ended}
    recording = load_recording(folder / "life")
    submitted = {
        int.from_bytes(recording.payload(event)[:8], "little"): event
        for event in recording.events
        if event.kind is Kind.WRITE_SUBMIT
    }
    completed = {event.reference for event in recording.events if event.kind is Kind.WRITE_COMPLETE}
    for number in acknowledged:
        assert submitted[number].seq in completed
        assert recording.payload(submitted[number]) == payload(number, LENGTH)

    view = {
        "schema": 1, "recording": "life", "cut": recording.events[-1].seq,
        "disks": {"d0": {"policy": "all"}},
    }  # fmt: skip
    (folder / "cut.view.json").write_text(json.dumps(view))
    shown = Server(
        build(),
        folder,
        "view",
        [disk("d0", size=DISK_BYTES, source=of_view("cut.view.json", "d0"))],
    )
    held = shown.contents({"d0": DISK_BYTES})["d0"]
    shown.stop()
    newest = {number * LENGTH % DISK_BYTES: number for number in sorted(submitted)}
    for place, number in newest.items():
        if number in acknowledged:
            assert held[place : place + LENGTH] == payload(number, LENGTH)


def test_a_log_that_is_cut_off_anywhere_is_read_to_its_last_whole_record(folder: Path) -> None:
    """By the reader and by the plugin alike."""
    server = Server(build(), folder, "s", [disk("d0")], recording="life")
    line = server.line("d0")
    line.wait_all([line.write(payload(number, 512), number * 512) for number in range(5)])
    server.kill()
    log = (folder / "life" / LOG).read_bytes()
    events = read_events(log)
    assert len(events) == 11
    source = of_view("cut.view.json", "d0")
    for length in [*range(4 * RECORD_BYTES, 6 * RECORD_BYTES, 13), 6 * RECORD_BYTES - 1]:
        whole = length // RECORD_BYTES
        assert read_events(log[:length]) == events[:whole]
        (folder / "life" / LOG).write_bytes(log[:length])
        for cut, is_there in ((whole - 1, True), (whole, False)):
            view = {
                "schema": 1, "recording": "life", "cut": cut, "disks": {"d0": {"policy": "all"}}
            }  # fmt: skip
            (folder / "cut.view.json").write_text(json.dumps(view))
            if is_there:
                Server(build(), folder, "view", [disk("d0", source=source)]).kill()
                continue
            with pytest.raises(HarnessError, match="not in the log"):
                Server(build(), folder, "view", [disk("d0", source=source)])


# The output of a shelf's server is where an error says it is, when the recordings are gone.


def test_a_server_that_cannot_start_leaves_its_reason_in_a_file(folder: Path) -> None:
    logs = folder / "evidence"
    logs.mkdir()
    shelf = Shelf(directory=folder / "shelf", socket=folder / "s", logs=logs)
    with pytest.raises(HarnessError, match="the shelf ended at once") as failure:
        shelf.start([ShelfDisk(serial="d", size_mib=64)], view=folder / "no.view.json")
    shelf.stop()
    shutil.rmtree(shelf.directory)
    name = failure.value.hint.removeprefix("read ")
    assert Path(name).parent == logs
    assert "no.view.json" in Path(name).read_text()
