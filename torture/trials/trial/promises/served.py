"""Proof after a cut: the shelf serves the crash state that plan and recording say.

A shelf that keeps all writes would show every cell as safe. The expected bytes come from the suite's
own model of a cut (`torture.facts.recording.model`), of which the shelf's plugin shares no code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from torture.errors import HarnessError
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import (
    RecordedDisk,
    Recording,
    ViewSource,
    load_recording,
)
from torture.facts.recording.model import uncovered, writes_until
from torture.facts.states.layers import ZEROES, Layers
from torture.machines.shelf.connection import Connection
from torture.machines.shelf.server import Shelf

_PIECE_BYTES = 4096
_WRITES_MAX = 64
"""The last ones of each disk: of as many writes that a seed decides, a wrong one shows at once."""
_READ_DEADLINE_S = 10


def require_planned(shelf: Shelf, view: Path, disks: Sequence[ShelfDisk]) -> None:
    """Raise `HarnessError` where a disk of a shelf that just started has other bytes than planned.

    It looks where the cut decided: at both ends of the writes that no flush covers.
    """
    layers = Layers(_began_as(view, disks, shelf.recording), [disk.serial for disk in disks])
    for disk in disks:
        pieces = layers.pieces(disk.serial)
        begins = np.array([piece.offset for piece in pieces], np.int64)
        ends = begins + np.array([piece.length for piece in pieces], np.int64)
        connection = Connection(socket=shelf.socket, export=disk.serial)
        for offset in _decided_places(view, disk):
            planned = bytearray(_PIECE_BYTES)
            for number in np.flatnonzero((begins < offset + _PIECE_BYTES) & (ends > offset)):
                piece = pieces[number]
                first = max(piece.offset, offset)
                length = min(piece.offset + piece.length, offset + _PIECE_BYTES) - first
                content = bytes(length)
                if piece.file != ZEROES:
                    place = piece.place + first - piece.offset
                    content = _bytes_of(layers.files[piece.file], place, length)
                planned[first - offset : first - offset + length] = content
            served = connection.read(_PIECE_BYTES, offset, deadline_s=_READ_DEADLINE_S)
            if served != planned:
                raise HarnessError(
                    f"the shelf does not serve the planned crash state: {disk.serial} differs at byte "
                    f"{offset}",
                    hint=f"compare {view} with {shelf.recording}",
                )
        connection.close()


def _began_as(view: Path, disks: Sequence[ShelfDisk], folder: Path) -> Recording:
    """A recording without a request, over the disks of a view."""
    recorded = (
        RecordedDisk(
            name=disk.serial,
            size=disk.size_mib * 1024 * 1024,
            sector=disk.sector_bytes,
            physical_sector=disk.physical_sector_bytes,
            source=ViewSource(view=view, disk=disk.serial),
        )
        for disk in disks
    )
    return Recording(folder=folder, disks=tuple(recorded), events=())


def _decided_places(view: Path, disk: ShelfDisk) -> Iterator[int]:
    """Where the last writes begin and end whose survival the cut decided, by their pieces."""
    state = read_crash_state(view)
    recording = load_recording(state.recording)
    place = recording.place_of(disk.serial)
    decided = uncovered(
        writes_until(recording.events, disk=place, cut=state.cut, view=state.disks[disk.serial])
    )
    for write in decided[-_WRITES_MAX:]:
        for byte in {write.offset, write.offset + write.length - 1}:
            yield byte // _PIECE_BYTES * _PIECE_BYTES


def _bytes_of(file: Path, place: int, length: int) -> bytes:
    with file.open("rb") as data:
        data.seek(place)
        return data.read(length)
