"""No room for what the shelf records: a clear error, no death, and all that was completed is there."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from suites.selftest.shelf.requests import payload
from suites.selftest.shelf.rig import Line, Reply, Server, build, disk
from torture.errors import HarnessError
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.events import Kind, Recording, load_recording
from torture.facts.recording.model import content

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
    line, control = server.line("d0"), server.line("control")
    if not has_room:
        limit_files(server, MIB)
    control.wait_all([control.write(b'{"freeze": {"at_seq": %d}}' % (PAGE_EVENTS - 1), 0)])
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
    view = '{"schema": 1, "recording": "life", "cut": 9, "disks": {"d0": {"policy": "all"}}}'
    (folder / "cut.view.json").write_text(view)
    disks = [disk("d0", source={"view": "cut.view.json", "disk": "d0"})]
    limited = build().wrapped("prlimit", "--fsize=4096")
    with pytest.raises(HarnessError, match="no room for the index"):
        Server(limited, folder, "view", disks, threads=1)
    server = Server(build(), folder, "view", disks)
    assert server.contents({"d0": 65536})["d0"] == bytes(65536)
    server.stop()
