"""A failure of the host is the shelf's error, and not the guest's disk: counted, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from suites.selftest.shelf.requests import payload
from suites.selftest.shelf.rig import Server, build, disk, of_view
from torture.errors import HarnessError
from torture.facts.recording.accounting import keep_all
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import DATA, load_recording, verify_payloads

NEVER_READ = "/proc/self/mem"
"""Nothing is mapped at its beginning: pread there ends with EIO (proc(5))."""
BYTES = 65536


def test_a_read_that_the_host_fails_is_counted(folder: Path) -> None:
    source = {"image": NEVER_READ}
    server = Server(build(), folder, "s", [disk("d0", source=source)], recording="life")
    line = server.line("d0")
    assert line.wait(line.read(512, 0)).error is not None
    status = server.status()
    assert status["errors"] == 1
    assert "pread" in status["last_error"]
    line.wait_all([line.write(b"good" * 128, 512)])
    assert line.wait(line.read(512, 512)).data() == b"good" * 128, "the others are served"
    server.end()


@pytest.fixture
def recorded(folder: Path) -> Path:
    """A recording of some writes, with a crash state of all of it."""
    server = Server(build(), folder, "s", [disk("d0")], recording="life")
    line = server.line("d0")
    line.wait_all([line.write(payload(place, 4096), place * 4096) for place in range(8)])
    server.end()
    recording = load_recording(folder / "life")
    disks = (ShelfDisk(serial="d0", size_mib=1),)
    state = keep_all(recording.folder, cut=recording.events[-1].seq, disks=disks)
    write_crash_state(folder / "v.json", state)
    return folder / "life" / DATA


def view(folder: Path) -> bytes:
    """The disk of the crash state, as a new server has it."""
    server = Server(build(), folder, "t", [disk("d0", source=of_view("v.json", "d0"))])
    try:
        line = server.line("d0")
        return line.wait(line.read(BYTES // 2, 0)).data()
    finally:
        server.end()


def test_data_that_are_shorter_than_the_log_needs_are_refused(recorded: Path) -> None:
    folder = recorded.parents[1]
    assert view(folder) == b"".join(payload(place, 4096) for place in range(8))
    os.truncate(recorded, 7 * 4096)
    with pytest.raises(HarnessError, match=r"data has 28672 bytes, and its log needs 32768"):
        view(folder)


def test_a_payload_that_changed_is_found_before_a_replay(recorded: Path) -> None:
    recording = load_recording(recorded.parent)
    verify_payloads(recording)
    content = bytearray(recorded.read_bytes())
    content[9000] ^= 1
    recorded.write_bytes(content)
    with pytest.raises(HarnessError, match="does not hold the payload of event"):
        verify_payloads(recording)


def spoil(data: Path, place: int, length: int) -> None:
    """Zero bytes of a file in place: a server that has it open sees them."""
    with data.open("r+b") as file:
        file.seek(place)
        file.write(bytes(length))


@pytest.mark.parametrize("changed_after_open", [False, True])
def test_a_payload_that_changed_is_not_served_by_a_view(
    recorded: Path, changed_after_open: bool
) -> None:
    folder = recorded.parents[1]
    if not changed_after_open:
        spoil(recorded, 2 * 4096 + 512, 512)
    server = Server(build(), folder, "t", [disk("d0", source=of_view("v.json", "d0"))])
    line = server.line("d0")
    if changed_after_open:
        assert line.wait(line.read(512, 2 * 4096)).error is None
        spoil(recorded, 2 * 4096 + 512, 512)
    assert line.wait(line.read(512, 2 * 4096)).error is not None, "another part of the same write"
    assert line.wait(line.read(BYTES // 2, 0)).error is not None
    assert line.wait(line.read(4096, 4096)).data() == payload(1, 4096), "the others are served"
    assert line.wait(line.read(4096, 3 * 4096 - 2048)).error is not None, "the end of the write"
    status = server.status()
    server.end()
    assert status["errors"] == 3
    assert "the payload at byte 8192 of data changed" in status["last_error"]


def test_a_payload_that_changed_is_not_served_by_the_disk_that_stored_it(folder: Path) -> None:
    server = Server(build(), folder, "s", [disk("d0")], recording="life")
    line = server.line("d0")
    line.wait_all([line.write(payload(place, 8192), place * 8192) for place in range(4)])
    assert line.wait(line.read(8192, 4096)).data() == (
        payload(0, 8192)[4096:] + payload(1, 8192)[:4096]
    )
    spoil(folder / "life" / DATA, 8192, 8192)
    assert line.wait(line.read(8192, 4096)).error is not None
    assert server.status()["errors"] == 1
    line.wait_all([line.write(b"good" * 2048, 8192)])
    assert line.wait(line.read(8192, 8192)).data() == b"good" * 2048, "what replaced it is served"
    server.end()
