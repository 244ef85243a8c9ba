"""How slow a disk says it is, is how slow it is: latencies, bandwidth, one request at a time.

A shelf that is killed or cannot start: what it acknowledged, or its reason, can be read.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbd
import pytest

from suites.selftest.shelf.requests import payload
from suites.selftest.shelf.rig import (
    Reply,
    Server,
    build,
    connected,
    disk,
    held_at_cut,
    of_cut,
    shelf_of_one_disk,
)
from torture.errors import HarnessError
from torture.facts.axes.pool_disks import SlogClass
from torture.facts.recording.disks import Profile, ShelfDisk
from torture.facts.recording.events import LOG, RECORD_BYTES, Kind, load_recording, read_events
from torture.machines.nas.pool import LOG_PROFILES
from torture.machines.shelf.control import Connection, FreezeOn
from torture.machines.shelf.server import Shelf

_BLOCK = bytes(4096)
_SLACK_S = 0.5
"""A busy machine may be late, but not by seconds."""


@contextmanager
def _shelf(profile: Profile) -> Iterator[tuple[Shelf, Path]]:
    with shelf_of_one_disk(profile=profile) as shelf:
        yield shelf, shelf.socket


def _connected(socket: Path) -> nbd.NBD:
    return connected(socket, "d")


def _seconds_together(action: str, *arguments: Sequence[object], socket: Path) -> float:
    """Until each of several clients has done this, all of them at once."""
    threads = [
        threading.Thread(target=getattr(_connected(socket), action), args=own) for own in arguments
    ]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return time.monotonic() - begun


def _seconds(action: object, *arguments: object) -> float:
    assert callable(action)
    begun = time.monotonic()
    action(*arguments)
    return time.monotonic() - begun


def test_marks_are_timed_by_the_log_of_the_server_that_runs() -> None:
    with _shelf(Profile()) as (shelf, _):
        marks = shelf.marks()
        assert all(marks.write(payload) for payload in (b"1", b"2"))
        assert len(marks.spans_ns) == 2
        shelf.stop()
        assert not marks.write(b"3")
        shelf.start([ShelfDisk(serial="d", size_mib=64, profile=Profile())])
        assert marks.write(b"4")
        assert len(marks.spans_ns) == 1


def test_each_kind_of_request_takes_its_latency() -> None:
    with _shelf(Profile(read_us=20_000, write_us=40_000, flush_us=80_000)) as (_, socket):
        disk = _connected(socket)
        assert 0.02 <= _seconds(disk.pread, 4096, 0) < 0.04 + _SLACK_S
        assert 0.04 <= _seconds(disk.pwrite, _BLOCK, 0) < 0.08 + _SLACK_S
        assert 0.08 <= _seconds(disk.flush) < 0.12 + _SLACK_S
        assert _seconds(disk.pwrite, _BLOCK, 0, nbd.CMD_FLAG_FUA) >= 0.12


def test_a_read_elsewhere_moves_the_arm() -> None:
    with _shelf(Profile(seek_us=50_000)) as (_, socket):
        disk = _connected(socket)
        assert _seconds(disk.pread, 4096, 0) < _SLACK_S, "the arm begins there"
        assert (
            _seconds(lambda: [disk.pread(4096, 4096 * place) for place in range(1, 40)]) < _SLACK_S
        )
        assert _seconds(disk.pread, 4096, 0) >= 0.05
        assert _seconds(lambda: [disk.pread(4096, 0) for _ in range(4)]) >= 0.2
        disk.pwrite(_BLOCK, 1 << 20)
        assert _seconds(disk.pread, 4096, 4096) < _SLACK_S, "a write goes into the disk's cache"


def test_seeks_wait_for_each_other() -> None:
    with _shelf(Profile(seek_us=50_000)) as (_, socket):
        reads = [(4096, 1 << 20 << place) for place in range(4)]
        assert _seconds_together("pread", *reads, socket=socket) >= 0.2


def test_a_flush_of_an_empty_cache_takes_no_time() -> None:
    """As on real disks. A flush after a write through the cache has nothing to write, either."""
    with _shelf(Profile(flush_us=1_000_000)) as (_, socket):
        disk = _connected(socket)
        assert _seconds(disk.flush) < _SLACK_S
        disk.pwrite(_BLOCK, 0, nbd.CMD_FLAG_FUA)
        assert _seconds(disk.flush) < _SLACK_S
        for change, *arguments in ((disk.pwrite, _BLOCK, 0), (disk.zero, 4096, 0)):
            _seconds(change, *arguments)
            assert _seconds(disk.flush) >= 1
            assert _seconds(disk.flush) < _SLACK_S


def test_a_slowed_shelf_takes_its_times_so_often() -> None:
    with _shelf(Profile(write_us=20_000, flush_us=100_000, mib_per_s=400)) as (shelf, socket):
        disk = _connected(socket)
        shelf.control.slow(4)
        assert _seconds(disk.pwrite, _BLOCK, 0) >= 0.08
        assert _seconds(disk.flush) >= 0.4
        assert _seconds(disk.pwrite, bytes(8 << 20), 0) >= 0.16
        shelf.control.slow(0)
        through = nbd.CMD_FLAG_FUA
        assert _seconds(lambda: [disk.pwrite(_BLOCK, 0, through) for _ in range(9)]) < _SLACK_S
        for refused in (-1, 1e7):
            with pytest.raises(HarnessError, match="Invalid argument"):
                shelf.control.slow(refused)


@pytest.mark.parametrize(("serial", "least_s", "most_s"), [(False, 0.1, 0.3), (True, 0.4, 9.0)])
def test_a_serial_disk_does_one_thing_after_the_other(
    serial: bool, least_s: float, most_s: float
) -> None:
    with _shelf(Profile(flush_us=100_000, serial=serial)) as (_, socket):
        writes = [(_BLOCK, 0, nbd.CMD_FLAG_FUA)] * 4
        assert least_s <= _seconds_together("pwrite", *writes, socket=socket) < most_s


def test_bandwidth_bounds_large_writes() -> None:
    with _shelf(Profile(mib_per_s=50)) as (_, socket):
        disk = _connected(socket)
        assert _seconds(lambda: [disk.pwrite(bytes(1 << 20), 0) for _ in range(10)]) >= 0.2


@pytest.mark.parametrize("slog_class", [SlogClass.HDD, SlogClass.SATA_SSD, SlogClass.SAS_SSD])
def test_a_synchronous_write_takes_the_time_published_for_its_class(slog_class: SlogClass) -> None:
    """The faster classes take less than this machine's own way to the shelf and back."""
    published_s = {"hdd": 10e-3, "sata": 1e-3, "sas": 1e-4}[slog_class]
    with _shelf(LOG_PROFILES[slog_class]) as (_, socket):
        disk = _connected(socket)

        def write_and_flush() -> None:
            disk.pwrite(_BLOCK, 0)
            disk.flush()

        taken = sorted(_seconds(write_and_flush) for _ in range(9))
        assert published_s <= taken[0] < published_s + _SLACK_S


def test_a_freeze_after_some_time_comes_then() -> None:
    with _shelf(Profile()) as (shelf, socket):
        control = Connection(socket=socket, export="control")
        begun = time.monotonic()
        control.write(b'{"freeze": {"after_ms": 150}}', deadline_s=10)
        assert not shelf.is_frozen
        while not shelf.is_frozen:
            assert time.monotonic() - begun < 0.15 + _SLACK_S
            time.sleep(0.002)
        assert time.monotonic() - begun >= 0.15


def test_a_freeze_amid_an_epoch_leaves_the_flush_submitted_and_nothing_after_it() -> None:
    with _shelf(Profile()) as (shelf, socket):
        disk = _connected(socket)
        disk.pwrite(_BLOCK, 0)
        shelf.freeze_on(FreezeOn(event=Kind.FLUSH_SUBMIT, disk="d", count=2))
        disk.flush()
        disk.pwrite(_BLOCK, 4096)

        def flush_in_vain() -> None:
            with pytest.raises(nbd.Error):
                disk.flush()

        stuck = threading.Thread(target=flush_in_vain)
        stuck.start()
        while not shelf.is_frozen:
            time.sleep(0.002)
        cut = shelf.freeze()
        shelf.stop()
        stuck.join(20)
        assert not stuck.is_alive()
        events = load_recording(shelf.recording).events
        assert events[cut].kind is Kind.FLUSH_SUBMIT
        assert [event.kind for event in events[cut + 1 :]] == [Kind.FREEZE]


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

    held = held_at_cut(folder, recording.events[-1].seq, DISK_BYTES)
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
    for length in [*range(4 * RECORD_BYTES, 6 * RECORD_BYTES, 13), 6 * RECORD_BYTES - 1]:
        whole = length // RECORD_BYTES
        assert read_events(log[:length]) == events[:whole]
        (folder / "life" / LOG).write_bytes(log[:length])
        for cut, is_there in ((whole - 1, True), (whole, False)):
            disks = [disk("d0", source=of_cut(folder, cut))]
            if is_there:
                Server(build(), folder, "view", disks).kill()
                continue
            with pytest.raises(HarnessError, match="not in the log"):
                Server(build(), folder, "view", disks)


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
