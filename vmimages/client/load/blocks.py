"""The codec of self-describing blocks: every 512-byte sector identifies its write.

A disk may tear a 4096-byte block at any sector, or return an older one, another file's or nothing.
So each sector carries its trial, file, sequence number of the writing operation and place (block,
sector), to distinguish these. A checksum covers all of that and the filler.
"""

from __future__ import annotations

import struct
import zlib
from hashlib import shake_256

BLOCK_BYTES = 4096
SECTOR_BYTES = 512
SECTORS = BLOCK_BYTES // SECTOR_BYTES

_HEADER = struct.Struct("<8sQQQII")
_CHECKSUM = struct.Struct("<I")
_MAGIC = b"PWRCUT\x01\n"
_FILLER_BYTES = SECTOR_BYTES - _HEADER.size - _CHECKSUM.size
_ZERO_SECTOR = bytes(SECTOR_BYTES)
_ZERO_BLOCK = bytes(BLOCK_BYTES)
_POOL_BYTES = 1 << 18
_WORD_BYTES = 8
"""OpenZFS splits a write between two blocks of its intent log at a multiple of these (zil.c, `dnow`)."""
_SEQS_MAX = 1 << 13
"""More operations than a load ever starts."""

TYPE_CHECKING = False  # `typing` itself is one of the slow imports
if TYPE_CHECKING:
    from typing import TypeAlias

    Sector: TypeAlias = int | str
    Block: TypeAlias = int | str | list[int | str]


class Encoder:
    """Makes blocks of one trial; filler is cut from one pool, the same for the same trial."""

    __slots__ = ("_pool", "_trial")

    def __init__(self, trial: int) -> None:
        self._trial = trial
        self._pool = shake_256(b"%d" % trial).digest(_POOL_BYTES)

    def block(self, *, file: int, seq: int, index: int) -> bytes:
        """The 4096 bytes that operation `seq` writes at block `index` of `file`."""
        return b"".join(
            self.sector(file=file, seq=seq, index=index, sector=sector) for sector in range(SECTORS)
        )

    def sector(self, *, file: int, seq: int, index: int, sector: int) -> bytes:
        """The 512 bytes of one of its sectors."""
        place = (seq * 0x9E3779B1 + index * 0x85EBCA6B) % (_POOL_BYTES - SECTORS * _FILLER_BYTES)
        start = place + sector * _FILLER_BYTES
        body = (
            _HEADER.pack(_MAGIC, self._trial, file, seq, index, sector)
            + self._pool[start : start + _FILLER_BYTES]
        )
        return body + _CHECKSUM.pack(zlib.crc32(body))


def halves_of(data: bytes, *, trial: int, file: int, index: int, sector: int) -> Sector:
    """The two writes at the start and the end of an invalid sector.

    `half:<seq>:<seq>` where a multiple of 8 bytes parts the two, with 0 for zeros; else `garbage`.
    """
    encoder = Encoder(trial)

    def written_by(seq: int) -> bytes:
        if seq == 0:
            return _ZERO_SECTOR
        return encoder.sector(file=file, seq=seq, index=index, sector=sector)

    _, _, _, head, _, _ = _HEADER.unpack_from(data)
    heads = [seq for seq in (0, head) if seq < _SEQS_MAX]
    end = data[-_WORD_BYTES:]
    tails = [seq for seq in range(_SEQS_MAX) if written_by(seq)[-_WORD_BYTES:] == end]
    for head in heads:
        for tail in tails:
            begins, ends = written_by(head), written_by(tail)
            for split in range(_WORD_BYTES, SECTOR_BYTES, _WORD_BYTES):
                if data == begins[:split] + ends[split:]:
                    return f"half:{head}:{tail}"
    return "garbage"


def decode_sector(data: bytes, *, trial: int, file: int, index: int, sector: int) -> Sector:
    """The origin of a sector.

    Its sequence number when it is valid and in its place; else `zero`, `garbage` (no magic or a
    wrong checksum), `partial` (cut short by the end of the file) or
    `foreign:<trial>:<file>:<block>:<sector>:<seq>`: a valid sector that belongs to another place.
    """
    if len(data) < SECTOR_BYTES:
        return "partial"
    if data == _ZERO_SECTOR:
        return "zero"
    if not data.startswith(_MAGIC):
        return "garbage"
    (checksum,) = _CHECKSUM.unpack_from(data, SECTOR_BYTES - _CHECKSUM.size)
    if zlib.crc32(data[: -_CHECKSUM.size]) != checksum:
        return "garbage"
    _, of_trial, of_file, seq, of_index, of_sector = _HEADER.unpack_from(data)
    if (of_trial, of_file, of_index, of_sector) != (trial, file, index, sector):
        return f"foreign:{of_trial}:{of_file}:{of_index}:{of_sector}:{seq}"
    return int(seq)


def decode_block(data: bytes, *, trial: int, file: int, index: int) -> Block:
    """The origin of a block: one sector's answer if all agree, else a list of them.

    `data` is up to 4096 bytes; sectors wholly behind the end of the file are left out of the list.
    A sector that is the only garbage of its block is examined further: `halves_of`.
    """
    if data == _ZERO_BLOCK:
        return "zero"
    sectors = [
        decode_sector(
            data[start : start + SECTOR_BYTES],
            trial=trial,
            file=file,
            index=index,
            sector=start // SECTOR_BYTES,
        )
        for start in range(0, len(data), SECTOR_BYTES)
    ]
    if len(sectors) == SECTORS and len(set(sectors)) == 1:
        return sectors[0]
    if sectors.count("garbage") == 1:
        sector = sectors.index("garbage")
        half = data[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
        sectors[sector] = halves_of(half, trial=trial, file=file, index=index, sector=sector)
    return sectors
