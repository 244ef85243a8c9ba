"""A fault in what a cut left: the disk has it, and the recording of the life after the cut."""

from __future__ import annotations

from pathlib import Path

import nbd

from torture.facts.recording.accounting import keep_all
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Kind, load_recording
from torture.facts.recording.model import writes_until
from torture.facts.recording.remains import Patch, Remains
from torture.machines.shelf.server import Shelf
from torture.trials.trial.recovery import spoil

_DISKS = (ShelfDisk(serial="data0", size_mib=64), ShelfDisk(serial="data1", size_mib=64))
_SECTOR = 512


def _swapped(remains: Remains) -> tuple[Patch, ...]:
    """The disk's last write over its first place, and what was there before in its own."""
    cut = remains.cut
    *_, last = writes_until(remains.recording.events, disk=remains.disk, cut=cut)
    return (
        Patch(offset=0, content=remains.payload(last)),
        Patch(offset=last.offset, content=remains.held_before(last)),
    )


def _written(socket: Path, serial: str, *blocks: bytes) -> None:
    handle = nbd.NBD()
    handle.set_export_name(serial)
    handle.connect_unix(str(socket))
    for block in blocks:
        handle.pwrite(block, 8 * _SECTOR)


def _read(socket: Path, serial: str) -> list[bytes]:
    handle = nbd.NBD()
    handle.set_export_name(serial)
    handle.connect_unix(str(socket))
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
