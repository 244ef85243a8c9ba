"""The requests for files that a NAS answered: the promises that an NFS or SMB client builds on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from struct import Struct

from torture.facts.evidence.ledger import BLOCK_HEADER, BLOCK_MAGIC, SECTOR_BYTES

FILE_REQUESTS = "file-requests.jsonl"
FILE_REQUESTS_AGAIN = "file-requests-2.jsonl"
"""The requests of the client that lived on, up to the second cut."""

_HEADER = Struct(BLOCK_HEADER)


LoadSector = tuple[int, int, int]
"""A sector of the load: the operation that wrote it, its block, and its place in the block."""


class FileKind(StrEnum):
    """The requests whose answers promise something."""

    WRITE = "write"
    COMMIT = "commit"
    """NFS calls it COMMIT, SMB calls it FLUSH."""
    NAME = "name"
    """A name was made, moved or removed."""
    RESIZE = "resize"
    """A file's length was set: ZFS need not log an older write beyond the new end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRequest:
    """One request that the NAS carried out; the reader knows the instant of time 0."""

    kind: FileKind
    submitted_ns: int
    completed_ns: int
    file: str = ""
    """The handle, in hexadecimal; empty for a name."""
    offset_bytes: int = 0
    length_bytes: int = 0
    """A length of 0 in a commit is the rest of the file."""
    is_forced: bool = False
    """The answer promises that the write is stable."""
    verifier: str = ""
    """The life of the server; a commit vouches for the writes of its own life alone."""
    sectors: tuple[tuple[int, LoadSector], ...] = ()
    """The load's sectors in a write, each with its byte in the file before it."""
    names: tuple[str, ...] = ()
    """The names in Latin-1, which keeps every byte."""


def load_sectors_in(content: bytes) -> Iterator[tuple[int, LoadSector]]:
    """The load's sectors in the content, each with its first byte before it.

    A sector counts once its header is whole, even if the content ends before the sector does.
    """
    place = content.find(BLOCK_MAGIC)
    while 0 <= place <= len(content) - _HEADER.size:
        _magic, _trial, _file, operation, block, sector = _HEADER.unpack_from(content, place)
        yield place, (int(operation), int(block), int(sector))
        place = content.find(BLOCK_MAGIC, place + _HEADER.size)


def whole_sectors_of(content: bytes, *, offset_bytes: int) -> tuple[tuple[int, LoadSector], ...]:
    """The load's sectors that a write has as a whole, from first byte to last."""
    return tuple(
        (offset_bytes + place, sector)
        for place, sector in load_sectors_in(content)
        if place + SECTOR_BYTES <= len(content)
    )
