"""That the intent log holds all that an acknowledged operation wrote, and unharmed.

The load's sectors say whose they are, where they belong, and what their checksum is, and records of the
log hold them as they are. So of an operation of which the log has one sector it has all, unless a group
committed some: then an uberblock was written after the operation began. This rests on `zil_commit`
(OpenZFS `module/zfs/zil.c`): every write of the volume or file that no group has synced is in a record.

A record may end amid a sector, and the next block goes on (`zil_lwb_commit`): both parts are joined. They
were read one after the other, and may be of two writes: so no sector is accused by itself, only an
operation that has no sound copy of it. Nothing is said where the log could hold what is not seen: where a
block is split over disks, where data lie elsewhere in the pool, where parts do not meet, and where a
client compresses or encrypts, so that no sector of the operation shows.

Where a sector stands in the volume is asked on a bare device alone, of which each file is one region. A
filesystem puts the blocks of a file where it likes, and no request of the client says what is in it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

from torture.facts.evidence.ledger import BLOCK_HEADER, BLOCK_MAGIC, BLOCK_SECTORS, SECTOR_BYTES
from torture.facts.recording.events import Event
from torture.facts.recording.intent_log import LoggedData, logged_data_in
from torture.oracles.audit.operations import Acknowledged, Sector

_HEADER = struct.Struct(BLOCK_HEADER)
_CHECKSUM = struct.Struct("<I")

_Place = tuple[tuple[int, ...], int]
"""A volume, and a sector of it."""


@dataclass(kw_only=True)
class Contents:
    """Follows the blocks of a log."""

    is_blind: bool = False
    _seen: set[int] = field(default_factory=set)
    """The operations of which a sector was begun."""
    _begins: dict[int, dict[Sector, set[int]]] = field(default_factory=dict)
    """By operation and sound sector, where its file would begin if that lay in one piece."""
    _not_to_be_told_at: int = -1
    """The last event by which an operation may be durable in a way that is not seen here."""
    _parts: dict[_Place, dict[bool, bytes]] = field(default_factory=dict)
    """Of sectors that a record cuts: how each begins and how it ends."""
    _unmet_at: dict[_Place, int] = field(default_factory=dict)
    """The events that wrote a part without its other part."""

    def hear_uberblock(self, event: Event) -> None:
        """An uberblock: what was written before it may be committed."""
        self._not_to_be_told_at = event.seq

    def hear_zil(self, event: Event, payload: bytes) -> None:
        """A block of the intent log, or several."""
        for piece in logged_data_in(payload):
            first, last = _sectors_of(piece)
            is_amid = piece.offset_bytes % SECTOR_BYTES and first == last
            if not piece.data or (is_amid and _end(piece) % SECTOR_BYTES):
                self._not_to_be_told_at = event.seq
            else:
                self._hear_piece(event, piece)

    def lacks_some_of(self, one: Acknowledged) -> bool:
        """Whether the log has a part of an operation, should have all of it, and has not."""
        unseen_at = max(self._not_to_be_told_at, *self._unmet_at.values(), -1)
        if self.is_blind or unseen_at > one.begun or one.number not in self._seen:
            return False
        begins = self._begins.get(one.number, {})
        if any(sector not in begins for sector in one.sectors):
            return True
        places = [begins[sector] for sector in one.sectors] if one.is_on_device else []
        return bool(places) and not set.intersection(*places)

    def _hear_piece(self, event: Event, piece: LoggedData) -> None:
        lead = -piece.offset_bytes % SECTOR_BYTES
        tail = (len(piece.data) - lead) % SECTOR_BYTES
        first, last = _sectors_of(piece)
        if lead:
            self._hear_part(event, (piece.volume, first), piece.data[:lead], is_end=True)
        for at in range(lead, len(piece.data) - tail, SECTOR_BYTES):
            self._hear_sector(piece.data[at : at + SECTOR_BYTES], piece.offset_bytes + at)
        if tail:
            self._hear_part(event, (piece.volume, last), piece.data[-tail:], is_end=False)

    def _hear_part(self, event: Event, place: _Place, part: bytes, *, is_end: bool) -> None:
        parts = self._parts.setdefault(place, {})
        parts[is_end] = part
        sector = parts.get(False, b"") + parts.get(True, b"")
        if len(parts) == len((False, True)) and len(sector) == SECTOR_BYTES:
            self._unmet_at.pop(place, None)
            self._hear_sector(sector, place[1] * SECTOR_BYTES)
        else:
            self._unmet_at[place] = event.seq

    def _hear_sector(self, data: bytes, offset_bytes: int) -> None:
        if not data.startswith(BLOCK_MAGIC):
            return
        _magic, _trial, file, operation, block, sector = _HEADER.unpack_from(data)
        self._seen.add(operation)
        if zlib.crc32(data[: -_CHECKSUM.size]) == _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0]:
            begins_at = offset_bytes - (block * BLOCK_SECTORS + sector) * SECTOR_BYTES
            known = self._begins.setdefault(operation, {})
            known.setdefault((file, block, sector), set()).add(begins_at)


def _end(piece: LoggedData) -> int:
    return piece.offset_bytes + len(piece.data)


def _sectors_of(piece: LoggedData) -> tuple[int, int]:
    """The first and the last sector that it is about."""
    return piece.offset_bytes // SECTOR_BYTES, (_end(piece) - 1) // SECTOR_BYTES
