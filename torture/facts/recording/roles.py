"""What a write to a disk of the pool is for, told by its content (native/README.md, "Roles")."""

from __future__ import annotations

import struct
from enum import StrEnum

UBERBLOCK_MAGIC = 0x00BAB10C
"""OpenZFS `include/sys/uberblock_impl.h`; the first field of an uberblock, its txg the third."""
EMBEDDED_CHECKSUM_MAGIC = 0x210DA7AB10C7A11
"""OpenZFS `include/sys/spa_checksum.h`, `ZEC_MAGIC`: of labels and of blocks of the ZIL."""
ZIL_MAGIC_AT = 144
"""In a block of the ZIL (`include/sys/zil.h`, `zil_chain_t`): behind its padding, pointer and length."""
LABEL_BYTES = 112 << 10
"""Of a label's configuration (`include/sys/vdev_impl.h`, `vdev_phys_t`), its checksum at its end."""
VOLUME_BLOCK_BYTES = 16 << 10
"""The default `volblocksize` (zfsprops(7))."""

_CHECKSUM_BYTES = 40
_UBERBLOCK = struct.Struct("<QQQ")
_MAGIC = struct.Struct("<Q")


class Role(StrEnum):
    """What a write is for."""

    ZIL = "zil"
    """A block of the intent log, on a log device or not."""
    UBERBLOCK = "uberblock"
    LABEL = "label"
    METADATA = "metadata"
    """Of a transaction group; written behind its data, and compressed, so of another length."""
    DATA = "data"
    """All else: data of a transaction group, whole blocks of the volume."""


TXG_ROLES = (Role.METADATA, Role.DATA)
"""All that has to be covered before a transaction group's uberblock is written."""


def role_of(payload: bytes) -> Role:
    """The role of a write with this payload, from a host of little-endian numbers.

    Writes of one role that lie side by side may have been merged: the first of them tells.
    """
    if len(payload) >= _UBERBLOCK.size and _number(payload, 0) == UBERBLOCK_MAGIC:
        return Role.UBERBLOCK
    if len(payload) == LABEL_BYTES and _has_checksum(payload, LABEL_BYTES - _CHECKSUM_BYTES):
        return Role.LABEL
    if _has_checksum(payload, ZIL_MAGIC_AT):
        return Role.ZIL
    return Role.METADATA if len(payload) % VOLUME_BLOCK_BYTES else Role.DATA


def txg_of(uberblock: bytes) -> int:
    """The transaction group that an uberblock ends."""
    _magic, _version, txg = _UBERBLOCK.unpack_from(uberblock)
    return int(txg)


def _has_checksum(payload: bytes, place: int) -> bool:
    fits = len(payload) >= place + _CHECKSUM_BYTES
    return fits and _number(payload, place) == EMBEDDED_CHECKSUM_MAGIC


def _number(payload: bytes, place: int) -> int:
    return int(_MAGIC.unpack_from(payload, place)[0])
