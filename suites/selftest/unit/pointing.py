"""Blocks of the intent log that point to data, and these data, for stories of the audit's tests."""

from __future__ import annotations

import struct

from torture.facts.recording.intent_log import EMBEDDED_CHECKSUM_MAGIC

FIRST_BLOCK = 5 << 20
"""Where a disk's allocations begin."""
BLOCK_BYTES = 16384
_UNIT_BYTES = 512


def pointer(place: int, *, txg: int, length: int = BLOCK_BYTES, vdev: int = 0) -> bytes:
    """A block pointer (`blkptr_t`) to this byte of a disk; its checksum is nothing."""
    units = length // _UNIT_BYTES
    first = vdev << 32 | units
    second = (place - FIRST_BLOCK) // _UNIT_BYTES
    size = BLOCK_BYTES // _UNIT_BYTES - 1
    words = [first, second, 0, 0, 0, 0, (units - 1) << 16 | size, 0, 0, 0, txg, 1, 0, 0, 0, 0]
    return struct.pack("<16Q", *words)


def pointing(*records: tuple[int, bytes]) -> bytes:
    """A block of the log with writes of 512 bytes at these places of a volume, each by its pointer."""
    packed = b"".join(
        struct.pack("<QQQQQQQQ", 9, 192, 22, 1, 1, offset, 512, 0) + blkptr
        for offset, blkptr in records
    )
    chain = bytes(136) + struct.pack("<QQ", 184 + len(packed), EMBEDDED_CHECKSUM_MAGIC)
    return (chain.ljust(184, b"\0") + packed).ljust(4096, b"\0")
