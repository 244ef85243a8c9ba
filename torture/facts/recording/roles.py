"""The purpose of a write to a pool's disk, detected by its content (native/README.md, "Roles")."""

from __future__ import annotations

import struct
from enum import StrEnum

UBERBLOCK_MAGIC = 0x00BAB10C
"""The first field of an uberblock; its txg is the third (OpenZFS `include/sys/uberblock_impl.h`)."""
EMBEDDED_CHECKSUM_MAGIC = 0x210DA7AB10C7A11
"""Marks labels and blocks of the ZIL (OpenZFS `include/sys/spa_checksum.h`, `ZEC_MAGIC`)."""
ZIL_MAGIC_AT = 144
"""The magic's offset in a ZIL block: behind padding, pointer and length (`include/sys/zil.h`,
`zil_chain_t`).
"""
LABEL_BYTES = 112 << 10
"""The size of a label's configuration, whose checksum is at its end (`include/sys/vdev_impl.h`,
`vdev_phys_t`).
"""
CHECKSUM_BYTES = 40
"""The checksum at the end of a label, with its magic (OpenZFS `include/sys/zio.h`, `zio_eck_t`)."""
VOLUME_BLOCK_BYTES = 16 << 10
"""The default `volblocksize` (zfsprops(7))."""

_UBERBLOCK = struct.Struct("<QQQ")
_MAGIC = struct.Struct("<Q")


class Role(StrEnum):
    """The purpose of a write."""

    ZIL = "zil"
    """A block of the intent log, on a log device or on data disks."""
    UBERBLOCK = "uberblock"
    LABEL = "label"
    METADATA = "metadata"
    """Metadata of a transaction group; written after its data, and compressed, so of another length."""
    DATA = "data"
    """All other writes: data of a transaction group, whole blocks of the volume."""


TXG_ROLES = (Role.METADATA, Role.DATA)
"""The roles that must be covered before a transaction group's uberblock is written."""


def role_of(payload: bytes) -> Role:
    """The role of a write with this payload, from a little-endian host.

    Adjacent writes of one role may have been merged: the first of them determines it.
    """
    if len(payload) >= _UBERBLOCK.size and _number(payload, 0) == UBERBLOCK_MAGIC:
        return Role.UBERBLOCK
    if len(payload) == LABEL_BYTES and _has_checksum(payload, LABEL_BYTES - CHECKSUM_BYTES):
        return Role.LABEL
    if _has_checksum(payload, ZIL_MAGIC_AT):
        return Role.ZIL
    return Role.METADATA if len(payload) % VOLUME_BLOCK_BYTES else Role.DATA


def txg_of(uberblock: bytes) -> int:
    """The transaction group that an uberblock ends."""
    _magic, _version, txg = _UBERBLOCK.unpack_from(uberblock)
    return int(txg)


def _has_checksum(payload: bytes, place: int) -> bool:
    fits = len(payload) >= place + CHECKSUM_BYTES
    return fits and _number(payload, place) == EMBEDDED_CHECKSUM_MAGIC


def _number(payload: bytes, place: int) -> int:
    return int(_MAGIC.unpack_from(payload, place)[0])
