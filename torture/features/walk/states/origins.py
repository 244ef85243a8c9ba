"""Where the bytes of each sector come from, in one crash state of a recording.

Two states with the same origins in some sectors have the same bytes there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.intent_log import CHECKSUM_BYTES, LABEL_BYTES, Role, role_of
from torture.facts.recording.layers import ZEROES, Layers, Piece


def lengths_of_labels(recording: Recording) -> dict[int, int]:
    """The length of the configuration in each write of a label, by submission; zeroes follow it."""
    payloads = {
        event.seq: recording.payload(event)
        for event in recording.events
        if event.kind is Kind.WRITE_SUBMIT and event.length == LABEL_BYTES
    }
    return {
        seq: len(payload[:-CHECKSUM_BYTES].rstrip(b"\0"))
        for seq, payload in payloads.items()
        if role_of(payload) is Role.LABEL
    }


SECTOR = 512
PAGE = 4096
"""The native engine says in pages which bytes a recovery has read (vmimages/zfs/recovery/disks.c)."""
_FILE_SHIFT = 48
"""An origin has the file's number, from 1, above so many bits, and the byte's place in it below."""

Sectors = npt.NDArray[np.int64]
Pages = npt.NDArray[np.int64]


class Origins:
    """The origins of all sectors of some disks; 0 for zeroes.

    `sizes` has the disks, and their lengths in bytes, multiples of a page.
    """

    def __init__(self, layers: Layers, sizes: Mapping[str, int]) -> None:
        self._layers = layers
        self._disks = {
            name: _Disk(layers.pieces(name), tuple(layers.spans(name)), size)
            for name, size in sizes.items()
        }

    def turn(self, state: CrashState) -> None:
        """Become those of this state; quick where the states come in the order of their cuts."""
        for name, disk in self._disks.items():
            layers = self._layers.of(state, name)
            disk.turn(layers.settled, layers.patches)

    def of(self, disk: str, pages: Pages) -> Sectors:
        """A row for each of these pages, by number, with the origins of its sectors."""
        return self._disks[disk].sectors[pages]

    def differing(self, disk: str, pages: Pages) -> Pages:
        """Of these pages, those that may have other bytes in another state of the recording."""
        return pages[self._disks[disk].is_written[pages]]


class _Disk:
    """One disk; its pieces are settled up to a place in their list, and the patches are on top."""

    def __init__(
        self, pieces: tuple[Piece, ...], spans: tuple[tuple[int, int], ...], size: int
    ) -> None:
        self._pieces = pieces
        self._settled = 0
        self._below: list[tuple[slice, Sectors]] = []
        self._flat = np.zeros(size // SECTOR, np.int64)
        self.sectors = self._flat.reshape(-1, PAGE // SECTOR)
        self.is_written = np.zeros(size // PAGE, np.bool_)
        for offset, length in spans:
            self.is_written[offset // PAGE : -(-(offset + length) // PAGE)] = True

    def turn(self, settled: int, patches: tuple[Piece, ...]) -> None:
        for span, origins in reversed(self._below):
            self._flat[span] = origins
        self._below.clear()
        if settled < self._settled:
            self._flat[:] = 0
            self._settled = 0
        for piece in self._pieces[self._settled : settled]:
            self._flat[_span(piece)] = _origins(piece)
        self._settled = settled
        for piece in patches:
            span = _span(piece)
            self._below.append((span, self._flat[span].copy()))
            self._flat[span] = _origins(piece)


def _span(piece: Piece) -> slice:
    return slice(piece.offset // SECTOR, (piece.offset + piece.length) // SECTOR)


def _origins(piece: Piece) -> Sectors | int:
    if piece.file == ZEROES:
        return 0
    first = (piece.file + 1 << _FILE_SHIFT) + piece.place
    return np.arange(first, first + piece.length, SECTOR)
