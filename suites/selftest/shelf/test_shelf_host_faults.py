"""A failure of the host, a full disk among them, is the shelf's error and not the guest's disk."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from suites.selftest.shelf.requests import payload
from suites.selftest.shelf.rig import Line, Reply, Server, build, disk, held_at_cut, of_cut, of_view
from torture.errors import HarnessError
from torture.facts.recording.crash_state import DiskState, Policy, write_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import DATA, Kind, Recording, load_recording, verify_payloads
from torture.facts.recording.model import content, keep_all

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


# No room for what the shelf records: a clear error, no death, and all that was completed is
# there.

MIB = 1 << 20
PAGE_EVENTS = 16384
"""Of the log, which grows by so many at once."""


def limit_files(server: Server, bytes_max: int) -> None:
    """A full file system, as one process sees it: its files cannot grow beyond this."""
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))


def holds(recording: Recording) -> bytes:
    """The first disk, with everything that was completed."""
    return content(
        bytes(recording.disks[0].size),
        recording.events,
        disk=0,
        sector=recording.disks[0].sector,
        view=DiskState(policy=Policy.ALL),
        cut=recording.events[-1].seq,
        seed=0,
        payload=lambda number: recording.payload(recording.events[number]),
    )


def write_until_it_is_full(line: Line, most: int) -> tuple[dict[int, bytes], str]:
    """Writes of 64 KiB one after another; what was acknowledged, by its place, and the error."""
    written: dict[int, bytes] = {}
    for place in range(most):
        data = payload(place, 65536)
        reply = line.wait(line.write(data, place * 65536))
        if reply.error is not None:
            return written, reply.error
        written[place] = data
    raise AssertionError("it never was full")


def test_no_room_for_payloads(folder: Path) -> None:
    server = Server(build(), folder, "s", [disk("d0", size=8 * MIB)], recording="life")
    line = server.line("d0")
    limit_files(server, 2 * MIB)
    written, error = write_until_it_is_full(line, 64)
    assert len(written) == 32
    assert "File too large" in error or "No space" in error
    status = server.status()
    assert status["errors"] == 1
    assert "pwrite" in status["last_error"]
    for place, data in written.items():
        assert line.wait(line.read(65536, place * 65536)).data() == data
    line.wait_all([line.trim(65536, 0), line.zero(65536, 65536), line.flush()])

    limit_files(server, resource.RLIM_INFINITY)
    line.wait_all([line.write(b"room" * 1024, 4 * MIB)])
    server.kill()
    recording = load_recording(folder / "life")
    failed = [event for event in recording.events if event.kind is Kind.FAILED]
    assert [(event.disk, event.error != 0) for event in failed] == [(0, True)]
    held = holds(recording)
    assert held[: 2 * 65536] == bytes(2 * 65536)
    assert held[2 * 65536 : 2 * MIB] == b"".join(written[place] for place in range(2, 32))
    assert held[4 * MIB : 4 * MIB + 4096] == b"room" * 1024


def trims(line: Line, count: int) -> list[Reply]:
    """So many trims, a few of them in flight at once."""
    replies: list[Reply] = []
    for number in range(count):
        replies.append(line.trim(512, number % 128 * 512))
        if number >= 64:
            line.wait(replies[number - 64])
    for reply in replies:
        line.wait(reply)
    return replies


def test_no_room_for_the_log(folder: Path) -> None:
    """Its first page is full, and there is no second one."""
    server = Server(build(), folder, "s", [disk("d0")], recording="life")
    line = server.line("d0")
    limit_files(server, MIB)
    replies = trims(line, PAGE_EVENTS // 2 + 100)
    refused = [reply for reply in replies if reply.error is not None]
    assert 100 <= len(refused) <= 200
    assert "no room for the log" in server.status()["last_error"]
    assert server.status()["seq"] == PAGE_EVENTS - 1
    line.wait(line.read(65536, 0)).data()

    limit_files(server, resource.RLIM_INFINITY)
    line.wait_all([line.write(b"room" * 128, 0)])
    server.kill()
    recording = load_recording(folder / "life")
    completed = [event for event in recording.events if event.kind is Kind.TRIM_COMPLETE]
    assert len(completed) == len(replies) - len(refused)
    assert holds(recording)[:512] == b"room" * 128


@pytest.mark.parametrize("has_room", [False, True])
def test_a_freeze_where_a_page_of_the_log_ends(folder: Path, has_room: bool) -> None:
    """The `freeze` record would be the first of the next page; without room there is none."""
    server = Server(build(), folder, "s", [disk("d0")], recording="life")
    line = server.line("d0")
    if not has_room:
        limit_files(server, MIB)
    server.tell({"freeze": {"at_seq": PAGE_EVENTS - 1}})
    trims(line, PAGE_EVENTS // 2 - 1)
    last = line.trim(512, 0)
    line.until(lambda: server.status()["frozen"])
    assert server.status()["seq"] == PAGE_EVENTS - 1
    late = line.write(bytes(512), 0)
    assert not line.has_ended(late)
    assert last.error is None
    server.kill()
    events = load_recording(folder / "life").events
    assert len(events) == PAGE_EVENTS + has_room
    assert (events[-1].kind is Kind.FREEZE) == has_room


def test_a_file_system_that_is_full(folder: Path) -> None:
    """A real one, of 3 MiB, in a mount namespace of the shelf's own."""
    place = folder / "full"
    place.mkdir()
    mount = f'mount -t tmpfs -o size=3m shelf "{place}" && exec "$@"'
    wrapper = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh")
    tried = subprocess.run([*wrapper, "true"], capture_output=True, timeout=30, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no mounts of one's own here: {tried.stderr.decode().strip()}")
    shelf = build().wrapped(*wrapper)
    server = Server(shelf, folder, "s", [disk("d0", size=8 * MIB)], recording="full/life")
    line = server.line("d0")
    written, error = write_until_it_is_full(line, 64)
    assert "No space" in error
    assert len(written) >= 24
    for done, data in written.items():
        assert line.wait(line.read(65536, done * 65536)).data() == data
    replies = trims(line, PAGE_EVENTS // 2 + 10)
    assert sum(reply.error is not None for reply in replies) >= 10
    server.require_healthy()
    inside = Path(f"/proc/{server.pid}/root{place}/life")
    shutil.copytree(inside, folder / "life")
    server.kill()
    recording = load_recording(folder / "life")
    for event in recording.events:
        if event.kind is Kind.WRITE_SUBMIT:
            assert recording.payload(event) == written[event.offset // 65536]


def test_no_room_for_the_index(folder: Path) -> None:
    """A view that cannot be opened says why."""
    server = Server(build(), folder, "s", [disk("d0")], recording="life")
    line = server.line("d0")
    line.wait_all([line.write(bytes(65536), 0) for _ in range(100)])
    server.kill()
    disks = [disk("d0", source=of_cut(folder, 9))]
    limited = build().wrapped("prlimit", "--fsize=4096")
    with pytest.raises(HarnessError, match="no room for the index"):
        Server(limited, folder, "view", disks, threads=1)
    assert held_at_cut(folder, 9, 65536) == bytes(65536)
