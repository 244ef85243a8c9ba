"""A disk with a fault: requests that it does not do, or late; and a fault in what a cut left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbd
import pytest
from msgspec.structs import replace

from suites.selftest.shelf.requests import payload
from suites.selftest.shelf.rig import connected, shelf_of_one_disk
from suites.selftest.unit.audit_story import BLOCK, uberblock, zil_block
from torture.errors import HarnessError
from torture.facts.recording.certain_content import CertainContent, Patch
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    read_crash_state,
    write_crash_state,
)
from torture.facts.recording.disks import DiskFault, ShelfDisk
from torture.facts.recording.events import Kind, Recording, load_recording
from torture.facts.recording.intent_log import Role
from torture.facts.recording.model import keep_all, writes_until
from torture.machines.shelf.control import Connection
from torture.machines.shelf.server import Shelf
from torture.trials.trial.promises.proof import require_planned
from torture.trials.trial.recovery import spoil

_EARLY_MS = 200
_SLOW_MS = 500
_DEADLINE_S = 10.0


@contextmanager
def _shelf(fault: DiskFault) -> Iterator[tuple[Shelf, nbd.NBD]]:
    with shelf_of_one_disk(fault=fault) as shelf:
        yield shelf, connected(shelf.socket, "d")


def _kinds(recording: Recording) -> list[Kind]:
    return [event.kind for event in recording.events[1:]]


def _padded(payload: bytes) -> bytes:
    return payload + bytes(-len(payload) % 4096)


def test_writes_of_one_role_are_lost_and_no_others() -> None:
    with _shelf(DiskFault(lose_write_every=2, role=Role.ZIL)) as (shelf, disk):
        for place, payload in enumerate((BLOCK, zil_block(), BLOCK, BLOCK, zil_block())):
            disk.pwrite(_padded(payload), place << 20)
        recording = load_recording(shelf.recording)
    written = [event.offset >> 20 for event in recording.events if event.kind is Kind.WRITE_SUBMIT]
    assert written == [0, 1, 2, 3]


def test_flushes_behind_one_role_are_dropped_and_no_others() -> None:
    with _shelf(DiskFault(drop_flush_every=1, role=Role.UBERBLOCK)) as (shelf, disk):
        disk.pwrite(_padded(BLOCK), 0)
        disk.flush()
        disk.pwrite(_padded(uberblock(5)), 1 << 20)
        disk.flush()
        recording = load_recording(shelf.recording)
    assert _kinds(recording).count(Kind.FLUSH_SUBMIT) == 1
    assert _kinds(recording)[-1] is Kind.WRITE_COMPLETE


def test_an_early_flush_is_acknowledged_before_it_is_done() -> None:
    with _shelf(DiskFault(flush_early_ms=_EARLY_MS)) as (shelf, disk):
        disk.pwrite(_padded(BLOCK), 0)
        disk.flush()
        assert shelf.marks().write(b"acknowledged")
        end_s = time.monotonic() + _DEADLINE_S
        while Kind.FLUSH_COMPLETE not in _kinds(load_recording(shelf.recording)):
            assert time.monotonic() < end_s
            time.sleep(0.02)
        kinds = _kinds(load_recording(shelf.recording))
    assert kinds[-3:] == [Kind.MARK, Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE]


def test_a_slow_write_is_overtaken_and_done() -> None:
    slow = DiskFault(slow_write_every=2, slow_write_ms=_SLOW_MS, role=Role.ZIL)
    with _shelf(slow) as (shelf, disk):
        begun_s = time.monotonic()
        for place, payload in enumerate((zil_block(), BLOCK, BLOCK)):
            disk.pwrite(_padded(payload), place << 20)
        assert time.monotonic() - begun_s < _SLOW_MS / 1000
        slow_one = disk.aio_pwrite(
            nbd.Buffer.from_bytearray(bytearray(_padded(zil_block()))), 3 << 20
        )
        disk.pwrite(_padded(BLOCK), 4 << 20)
        while not disk.aio_command_completed(slow_one):
            disk.poll(-1)
        recording = load_recording(shelf.recording)
    places = {
        event.seq: event.offset >> 20
        for event in recording.events
        if event.kind is Kind.WRITE_SUBMIT
    }
    completed = [
        places[event.reference] for event in recording.events if event.kind is Kind.WRITE_COMPLETE
    ]
    assert completed == [0, 1, 2, 4, 3]


# A fault in what a cut left: the disk has it, and the recording of the life after the cut.

_DISKS = (ShelfDisk(serial="data0", size_mib=64), ShelfDisk(serial="data1", size_mib=64))
_SECTOR = 512


def _swapped(remains: CertainContent) -> tuple[Patch, ...]:
    """The disk's last write over its first place, and what was there before in its own."""
    cut = remains.cut
    *_, last = writes_until(remains.recording.events, disk=remains.disk, cut=cut)
    return (
        Patch(offset=0, content=remains.payload(last)),
        Patch(offset=last.offset, content=remains.content_before(last)),
    )


def _written(socket: Path, serial: str, *blocks: bytes) -> None:
    handle = connected(socket, serial)
    for block in blocks:
        handle.pwrite(block, 8 * _SECTOR)


def _read(socket: Path, serial: str) -> list[bytes]:
    handle = connected(socket, serial)
    return [bytes(handle.pread(_SECTOR, place)) for place in (0, 8 * _SECTOR)]


def test_a_spoiled_disk_is_served_so_and_the_others_as_they_were(folder: Path) -> None:
    socket = folder / "s"
    old, new, other = (letter * _SECTOR for letter in (b"o", b"n", b"x"))
    shelf = Shelf(directory=folder / "shelf", socket=socket)
    try:
        shelf.start(_DISKS)
        _written(socket, "data1", old, new)
        _written(socket, "data0", other)
        cut = shelf.freeze()
        shelf.stop()
        view = shelf.directory / "cut.view.json"
        write_crash_state(view, keep_all(shelf.recording, cut=cut, disks=_DISKS))
        shelf.start(_DISKS, view=view)
        spoil(shelf, _swapped, view=view, disk=_DISKS[1])
        assert _read(socket, "data1") == [new, old]
        assert _read(socket, "data0") == [bytes(_SECTOR), other]
        shelf.require_healthy()
    finally:
        shelf.stop()
    events = load_recording(shelf.recording).events
    written = [event.offset for event in events if event.kind is Kind.WRITE_SUBMIT]
    assert written == [0, 8 * _SECTOR]


# A shelf whose disks differ from the planned crash state is found out before a NAS reads them.

_DISK = ShelfDisk(serial="d0", size_mib=1, physical_sector_bytes=4096)
_WRITES = 12


@pytest.fixture
def shelf(folder: Path) -> Shelf:
    """A shelf of two lives: unflushed writes over others, and further ones above them."""
    shelf = Shelf(directory=folder / "r", socket=folder / "s")
    for life in range(2):
        before = folder / "r" / f"{life}.json"
        shelf.start((_DISK,), view=before if life else None)
        line = Connection(socket=shelf.socket, export="d0")
        for number in range(_WRITES):
            line.write(payload(16 * life + number, 8192), number * 4096, deadline_s=5)
        line.close()
        seq = shelf.freeze()
        recording = shelf.recording
        shelf.stop()
        torn = {"d0": DiskState(policy=Policy.TORN)}
        state = CrashState(recording=recording, cut=seq, seed=5, disks=torn)
        write_crash_state(folder / "r" / f"{life + 1}.json", state)
    return shelf


def state_of(shelf: Shelf, policy: Policy, seed: int) -> Path:
    """A file of this state of the last life."""
    drawn = read_crash_state(shelf.directory / "2.json")
    file = shelf.directory / f"{policy}.json"
    disks = {"d0": DiskState(policy=policy)}
    write_crash_state(file, replace(drawn, seed=seed, disks=disks))
    return file


_SEEDED = (Policy.SUBSET, Policy.TORN, Policy.PREFIX, Policy.OLDEST, Policy.BUT_FEW)


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.FLUSHED, *_SEEDED])
def test_the_planned_state_is_served(shelf: Shelf, policy: Policy) -> None:
    view = state_of(shelf, policy, 7)
    shelf.start((_DISK,), view=view)
    require_planned(shelf, view, (_DISK,))
    shelf.stop()


@pytest.mark.parametrize("policy", [Policy.FLUSHED, *_SEEDED])
def test_a_shelf_that_keeps_everything_is_found_out(shelf: Shelf, policy: Policy) -> None:
    shelf.start((_DISK,), view=state_of(shelf, Policy.ALL, 7))
    with pytest.raises(HarnessError, match="not serve the planned crash state: d0 differs"):
        require_planned(shelf, state_of(shelf, policy, 7), (_DISK,))
    shelf.stop()
