"""The load's sectors in what was written to a disk: each says whose it is.

The intent log and blocks of data that are not compressed hold them as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from torture.evidence.ledger import BLOCK_HEADER, BLOCK_MAGIC

_HEADER = struct.Struct(BLOCK_HEADER)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadSector:
    """A sector of the load: where it belongs, and which operation wrote it."""

    file: int
    block: int
    sector: int
    operation: int

    @property
    def place(self) -> tuple[int, int, int]:
        """What a later operation may write anew."""
        return (self.file, self.block, self.sector)


def load_sectors_in(payload: bytes) -> Iterator[LoadSector]:
    """The load's sectors that begin in there; one whose header is cut off is none."""
    place = payload.find(BLOCK_MAGIC)
    while place >= 0:
        if place + _HEADER.size <= len(payload):
            _magic, _trial, file, operation, block, sector = _HEADER.unpack_from(payload, place)
            yield LoadSector(file=file, block=block, sector=sector, operation=operation)
        place = payload.find(BLOCK_MAGIC, place + _HEADER.size)
