"""Which writes a block of the intent log holds (OpenZFS `include/sys/zil.h`, `module/zfs/zil.c`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from torture.recording.roles import EMBEDDED_CHECKSUM_MAGIC, ZIL_MAGIC_AT

_MAGIC = struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC)
_SECTOR_BYTES = 512
_USED_AT = 136
"""`zc_nused`, behind the padding and the pointer to the next block."""
_RECORDS_AT = 184
"""The size of `zil_chain_t`, which ends with its checksum of 40 bytes."""
_RECORD = struct.Struct("<QQQQ")
"""`lr_t`: type, length, transaction group, number."""
_WRITE = struct.Struct("<QQQ")
"""What follows it in `lr_write_t`: object, offset, length; then the block's offset and pointer."""
_TX_WRITE = 9
_LENGTH_MAX = 1 << 24
"""No block of ZFS is larger, and no record tells of more than one (`SPA_MAXBLOCKSHIFT`)."""
_USED = struct.Struct("<Q")


@dataclass(frozen=True, kw_only=True, slots=True)
class LogBlock:
    """Some writes to a volume, by place, and whether these are all that the block holds."""

    writes: tuple[tuple[int, int], ...]
    """Offset and length, in bytes."""
    is_whole: bool
    """Else a part of it lies elsewhere: the block was split over disks."""


def log_blocks_in(payload: bytes) -> Iterator[LogBlock]:
    """The blocks of the intent log in what was written to a disk; neighbours may have been merged."""
    for start in log_block_starts(payload):
        yield _block(payload[start:])


def log_block_starts(payload: bytes) -> Iterator[int]:
    """Where blocks of the intent log begin in what was written to a disk, in bytes."""
    place = payload.find(_MAGIC)
    while place >= 0:
        start = place - ZIL_MAGIC_AT
        if start >= 0 and start % _SECTOR_BYTES == 0:
            yield start
        place = payload.find(_MAGIC, place + len(_MAGIC))


def _block(block: bytes) -> LogBlock:
    (used,) = _USED.unpack_from(block, _USED_AT)
    end = min(used, len(block))
    writes = []
    place = _RECORDS_AT
    while place + _RECORD.size <= end:
        kind, length, _txg, _number = _RECORD.unpack_from(block, place)
        if length < _RECORD.size:
            break
        if kind == _TX_WRITE and place + _RECORD.size + _WRITE.size <= end:
            _object, offset, count = _WRITE.unpack_from(block, place + _RECORD.size)
            if count > _LENGTH_MAX:
                break  # what follows on this disk is no record: the block goes on elsewhere
            writes.append((offset, count))
        place += length
    return LogBlock(writes=tuple(writes), is_whole=len(block) >= used and place >= used)
