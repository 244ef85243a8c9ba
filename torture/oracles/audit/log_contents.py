"""The data of operations in the intent log: which blocks hold them, and whether they are whole."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from torture.facts.evidence.ledger import BLOCK_HEADER, BLOCK_MAGIC, BLOCK_SECTORS, SECTOR_BYTES
from torture.facts.evidence.requests import load_sectors_in
from torture.facts.recording.events import Event
from torture.facts.recording.intent_log import (
    ChainPlace,
    LoggedData,
    logged_data_in,
    placed_blocks_in,
)
from torture.oracles.audit.operations import Acknowledged, Sector
from torture.oracles.audit.pointed_data import PointedData

# Finds the intent log's blocks that hold an operation's data.
#
# The load's blocks name their operation, and the intent log does not compress them. So the audit
# can check the very blocks that hold an acknowledged operation.

_BlockSector = tuple[int, int]
"""A block of an operation, and a sector in it."""
_Block = ChainPlace | int
"""A log block: its place in its chain, or else its submission."""


@dataclass(kw_only=True)
class Logged:
    """Follows a recording. A sector that a log block's end cuts off is not found, and not judged."""

    _blocks: dict[int, dict[_BlockSector, dict[_Block, set[int]]]] = field(default_factory=dict)
    """By operation and sector, the log blocks that hold it in their order, each with its submissions."""
    _versions: dict[tuple[object, int], set[int]] = field(default_factory=dict)
    """By version of pointed data, the submissions of the data and of the log blocks that point there."""
    _pointed: dict[int, dict[_BlockSector, set[tuple[object, int]]]] = field(default_factory=dict)
    """By operation and sector, the versions that hold it."""

    def hear_zil(self, event: Event, payload: bytes) -> None:
        """Note one or several blocks of the intent log."""
        for place, content in placed_blocks_in(payload):
            for _, (operation, block, sector) in load_sectors_in(content):
                holding = self._blocks.setdefault(operation, {}).setdefault((block, sector), {})
                holding.setdefault(place or event.seq, set()).add(event.seq)

    def blocks_of(self, operation: int) -> frozenset[int]:
        """The submissions of the first blocks that hold this operation's data, with all their copies.

        btrfs keeps a small file's data amid its metadata, and writes them again with these. The later
        blocks matter to other operations only.
        """
        held = self._blocks.get(operation, {}).values()
        return frozenset().union(*(next(iter(blocks.values())) for blocks in held))

    def hear_pointed(self, event: Event, data: PointedData, payloads: Iterable[bytes]) -> None:
        """Note a block of the intent log that points to these data."""
        version = self._versions.setdefault(data.version, set())
        version |= {event.seq, *(data.submissions or ())}
        for payload in payloads:
            for _, (operation, block, sector) in load_sectors_in(payload):
                holding = self._pointed.setdefault(operation, {})
                holding.setdefault((block, sector), set()).add(data.version)

    def not_on_disk(
        self, operation: int, *, uncovered: Collection[int], now: int
    ) -> tuple[int, ...]:
        """The missing writes for the operation's pointed sectors that are in no version on the disks.

        `now` is the last event; later submissions are not on the disks. A volume's block also holds the
        data of older operations. An older version of the block has them on the disks, too, or a log
        block that holds them itself. Then it does not matter what happens to a later version.
        """
        missing: set[int] = set()
        in_log = self._blocks.get(operation, {})
        for sector, versions in self._pointed.get(operation, {}).items():
            holders = [self._versions[version] for version in versions]
            holders += [{number} for block in in_log.get(sector, {}).values() for number in block]
            left = [
                {number for number in holder if number in uncovered or number > now}
                for holder in holders
            ]
            if all(left):
                missing |= min(left, key=len)
        return tuple(sorted(missing))


# Checks that the intent log holds all data of an acknowledged operation, undamaged.
#
# The load's sectors contain their operation, place and checksum. Log records hold them
# unchanged. The log has all sectors of an operation, unless a group committed some. In that
# case an uberblock was written after the operation began. This rests on `zil_commit` (OpenZFS
# `module/zfs/zil.c`). Every write of the volume or file that no group has synced is in a record.
#
# A record may end amid a sector, and the next block continues it (`zil_lwb_commit`). The audit
# joins both parts. They may belong to two writes, since they are matched by their order only. So
# a single bad sector is no finding; an operation without any sound copy of a sector is. The
# audit judges nothing where the log may hold data that it cannot see:
#
# - blocks are split over disks;
# - data lie elsewhere in the pool;
# - parts do not meet;
# - a client compresses or encrypts, so that no sector of any operation is visible.
#
# The audit checks a sector's place in the volume only on a bare device, where each file is one
# region. A filesystem chooses the blocks of a file freely, and no request of the client shows
# that choice.

_HEADER = struct.Struct(BLOCK_HEADER)
_CHECKSUM = struct.Struct("<I")

_Place = tuple[tuple[int, ...], int]
"""A volume, and one of its sectors."""


@dataclass(kw_only=True)
class Contents:
    """Follows the blocks of the intent log."""

    is_blind: bool = False
    _seen: set[int] = field(default_factory=set)
    """The operations that a sector in the log names."""
    _begins: dict[int, dict[Sector, set[int]]] = field(default_factory=dict)
    """By operation and sound sector, where its file would begin if the file were contiguous."""
    _unobservable_at: int = -1
    """The last event that may have made an operation durable outside the visible records."""
    _parts: dict[_Place, dict[bool, bytes]] = field(default_factory=dict)
    """Both parts of each sector that a record cuts; the key is whether the part is its end."""
    _unmet_at: dict[_Place, int] = field(default_factory=dict)
    """The event that wrote a part of a sector whose other part is missing."""

    def hear_uberblock(self, event: Event) -> None:
        """Note an uberblock: it may commit all earlier writes."""
        self._unobservable_at = event.seq

    def hear_zil(self, event: Event, payload: bytes) -> None:
        """Note one or several blocks of the intent log."""
        for piece in logged_data_in(payload):
            first, last = _sectors_of(piece)
            is_amid = piece.offset_bytes % SECTOR_BYTES and first == last
            if not piece.data or (is_amid and _end(piece) % SECTOR_BYTES):
                self._unobservable_at = event.seq
            else:
                self._hear_piece(event, piece)

    def lacks_some_of(self, one: Acknowledged) -> bool:
        """Whether the log holds only a part of an operation that it must hold entirely."""
        if not self._shows_all_since(one.begun) or one.number not in self._seen:
            return False
        begins = self._begins.get(one.number, {})
        if any(sector not in begins for sector in one.sectors):
            return True
        places = [begins[sector] for sector in one.sectors] if one.is_on_device else []
        return bool(places) and not set.intersection(*places)

    def lacks_all_of(self, one: Acknowledged) -> bool:
        """Whether the log holds nothing of an operation, although it shows data of others."""
        is_due = bool(self._seen and one.sectors) and self._shows_all_since(one.begun)
        return is_due and one.number not in self._seen

    def _shows_all_since(self, event: int) -> bool:
        """Whether all that became durable since this event stands in a record that can be read."""
        unseen_at = max(self._unobservable_at, *self._unmet_at.values(), -1)
        return not self.is_blind and unseen_at <= event

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
    """The first and the last sector of a piece."""
    return piece.offset_bytes // SECTOR_BYTES, (_end(piece) - 1) // SECTOR_BYTES
