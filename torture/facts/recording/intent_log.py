"""The purpose of a write to a pool's disk by its content; blocks of the intent log, roots and labels.

See OpenZFS `include/sys/zil.h`, `module/zfs/zil.c` and `include/sys/uberblock_impl.h`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from torture.facts.recording.events import Kind, Recording

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
_UBERBLOCK_MAGIC = struct.Struct("<Q")
_MMP_MAGIC_AT, _MMP_CONFIG_AT = 176, 192
_MMP_MAGIC = 0xA11CEA11
"""OpenZFS `include/sys/uberblock_impl.h`."""


class Role(StrEnum):
    """The purpose of a write."""

    ZIL = "zil"
    """A block of the intent log, on a log device or on data disks."""
    UBERBLOCK = "uberblock"
    HEARTBEAT = "heartbeat"
    """The last uberblock once more, in a place of its own: a pool with `multihost` shows its host
    alive (OpenZFS `module/zfs/mmp.c`). It ends no transaction group. The shelf calls it an uberblock."""
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
        return Role.HEARTBEAT if _is_heartbeat(payload) else Role.UBERBLOCK
    if len(payload) == LABEL_BYTES and _has_checksum(payload, LABEL_BYTES - CHECKSUM_BYTES):
        return Role.LABEL
    if _has_checksum(payload, ZIL_MAGIC_AT):
        return Role.ZIL
    return Role.METADATA if len(payload) % VOLUME_BLOCK_BYTES else Role.DATA


def _is_heartbeat(uberblock: bytes) -> bool:
    """Whether `ub_mmp_config` has a sequence number: an uberblock that ends a group has 0 (`MMP_SEQ`)."""
    fits = len(uberblock) >= _MMP_CONFIG_AT + _UBERBLOCK_MAGIC.size
    is_marked = fits and _number(uberblock, _MMP_MAGIC_AT) == _MMP_MAGIC
    return is_marked and _number(uberblock, _MMP_CONFIG_AT) >> 32 & 0xFFFF > 0


def txg_of(uberblock: bytes) -> int:
    """The transaction group that an uberblock ends."""
    _magic, _version, txg = _UBERBLOCK.unpack_from(uberblock)
    return int(txg)


def _has_checksum(payload: bytes, place: int) -> bool:
    fits = len(payload) >= place + CHECKSUM_BYTES
    return fits and _number(payload, place) == EMBEDDED_CHECKSUM_MAGIC


def _number(payload: bytes, place: int) -> int:
    return int(_UBERBLOCK_MAGIC.unpack_from(payload, place)[0])


_MAGIC = struct.pack("<Q", EMBEDDED_CHECKSUM_MAGIC)
_SECTOR_BYTES = 512
_USED_AT = 136
"""`zc_nused`, behind the padding and the pointer to the next block."""
_RECORDS_AT = 184
"""The size of `zil_chain_t`, which ends with its checksum of 40 bytes."""
_RECORD = struct.Struct("<QQQQ")
"""`lr_t`: type, length, transaction group, number."""
_WRITE = struct.Struct("<QQQ")
"""Follows `lr_t` in `lr_write_t`: object, offset, length; then the block's offset and pointer."""
_TX_WRITE = 9
_KIND_MAX = 63
"""Types of records are small numbers (`TX_MAX_TYPE` is 25); other content rarely begins with one."""
_IGNORES_CASE = 1 << 63
"""A flag in a record's type (`TX_CI`)."""
_LENGTH_MAX = 1 << 24
"""No block of ZFS, and so no write in a record, is larger (`SPA_MAXBLOCKSHIFT`)."""
_USED = struct.Struct("<Q")
_NEXT_KEY = struct.Struct("<QQQQ")
_NEXT_KEY_AT = 104
"""The offset of the next block's key: the checksum in the pointer to it (`zil_chain_t`, `blkptr_t`,
`blk_cksum`).
"""
_NEXT_POINTER_AT = 8
"""The offset of the pointer to the next block, behind the padding."""
_FIRST_NUMBER = 2
"""The first block of a chain is number 1, and points to number 2."""
_POINTER_AT = 64
"""`lr_blkptr` in a write's record, behind `lr_t` and four numbers; only the data follow it."""
_POINTER_WORDS = struct.Struct("<16Q")
"""`blkptr_t` (OpenZFS `include/sys/spa.h`): three addresses of two words each, then the properties. Word
10 is the transaction group of its birth.
"""
_ADDRESSES = 3
_PROPERTIES_WORD, _BIRTH_WORD = 6, 10
_PADDING_WORDS = slice(7, 9)
_OF_THE_LOG = frozenset({0x0905, 0x0909})
"""Type and checksum in the properties of a pointer to a log block: `DMU_OT_INTENT_LOG` with
`ZIO_CHECKSUM_ZILOG` or `ZIO_CHECKSUM_ZILOG2`.
"""
_EMBEDDED = 1 << 39
_GANG = 1 << 63
"""A flag in an address of a gang block: the address has a list of the block's pieces."""
_SIZE_UNIT_BYTES = 512
_POINTER_ONLY_BYTES = _POINTER_AT + _POINTER_WORDS.size


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """A place in the pool: bytes of a top-level vdev, counted from the end of its first two labels."""

    vdev: int
    offset_bytes: int
    length_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PointedWrite:
    """A write that the log holds by a pointer to a data block; replay writes the whole block.

    See OpenZFS `module/zfs/zvol.c`, `zvol_replay_write`.
    """

    offset_bytes: int
    """The offset in the volume."""
    length_bytes: int
    txg: int
    """The transaction group in which the block was allocated."""
    extents: tuple[Extent, ...]
    """Copies: each extent holds the whole block."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainPlace:
    """A block's place in its chain.

    The pointer to the next block contains that block's number. The words of the pointer's checksum are
    the next block's key (OpenZFS `module/zfs/zil.c`, `zil_init_log_chain`; `include/sys/zil.h`,
    `ZIL_ZC_SEQ`).
    """

    chain: tuple[int, int, int]
    """Two random numbers, and the dataset's number."""
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LogBlock:
    """The writes to a volume in one log block, by place, and whether the block is whole here."""

    writes: tuple[tuple[int, int], ...]
    """Offset and length, in bytes, of the writes whose data are in the block."""
    is_whole: bool
    """False where a part of the block lies elsewhere, since it was split over disks."""
    pointed: tuple[PointedWrite, ...] = ()
    """The writes whose data are elsewhere in the pool (`WR_INDIRECT`)."""
    place: ChainPlace | None = None
    """None for a block without a next one, and for a part of a block without the pointer."""
    txg: int = 0
    """The highest transaction group of its records; 0 without records."""
    changes: bytes = b""
    """All its records other than writes, concatenated; names in them end with a zero byte."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedData:
    """A record's write to a volume or a file, or a part of one."""

    volume: tuple[int, ...]
    """Identifies the volume or file."""
    offset_bytes: int
    data: bytes
    """Empty where the record does not contain them: they lie elsewhere in the pool, or are all zeroes."""


def log_blocks_in(payload: bytes) -> Iterator[LogBlock]:
    """The log blocks in a disk write's payload; adjacent blocks may have been merged.

    A block that is split over disks ends where the next one begins, whatever length it states.
    """
    for start, end in pairwise([*log_block_starts(payload), len(payload)]):
        if _begins_a_log_block(payload[start:end]):
            yield _block(payload[start:end])


def placed_blocks_in(payload: bytes) -> Iterator[tuple[ChainPlace | None, bytes]]:
    """The content of each log block in a disk write's payload, with its place in its chain.

    The content before the first block is one without a place: a column of a split block.
    """
    starts = list(log_block_starts(payload))
    if first := payload[: starts[0]] if starts else payload:
        yield None, first
    for start, end in pairwise([*starts, len(payload)]):
        yield _chain_place(payload[start:end]), payload[start:end]


def log_block_starts(payload: bytes) -> Iterator[int]:
    """The offsets, in bytes, at which log blocks begin in a disk write's payload."""
    place = payload.find(_MAGIC)
    while place >= 0:
        start = place - ZIL_MAGIC_AT
        if start >= 0 and start % _SECTOR_BYTES == 0:
            yield start
        place = payload.find(_MAGIC, place + len(_MAGIC))


def logged_data_in(payload: bytes) -> Iterator[LoggedData]:
    """The data of every logged write in a disk write's payload; its log blocks must be whole."""
    for start, end in pairwise([*log_block_starts(payload), len(payload)]):
        block = payload[start:end]
        used, place = _USED.unpack_from(block, _USED_AT)[0], _RECORDS_AT
        dataset = _NEXT_KEY.unpack_from(block, _NEXT_KEY_AT)[:3]
        while place + _RECORD.size + _WRITE.size <= min(used, len(block)):
            kind, length, _txg, _number = _RECORD.unpack_from(block, place)
            if length < _RECORD.size:
                break
            if kind == _TX_WRITE:
                thing, offset, count = _WRITE.unpack_from(block, place + _RECORD.size)
                data = block[place + _POINTER_ONLY_BYTES : place + length][:count]
                is_here = len(data) == count
                yield LoggedData(
                    volume=(*dataset, thing), offset_bytes=offset, data=data if is_here else b""
                )
            place += length


def next_extents_in(payload: bytes) -> Iterator[Extent]:
    """Where the next block of each log block in a disk write's payload lies, or will lie.

    None for a gang block, and for a block that ends its chain.
    """
    for start in log_block_starts(payload):
        if _chain_place(payload[start:]) is not None:
            words = _POINTER_WORDS.unpack_from(payload, start + _NEXT_POINTER_AT)
            pairs = [words[at * 2 : at * 2 + 2] for at in range(_ADDRESSES)]
            yield from (_extent(*pair) for pair in pairs if any(pair) and not pair[1] & _GANG)


def _begins_a_log_block(block: bytes) -> bool:
    """Whether a block with the log's magic has the log's padding, and a pointer to a log block or none.

    A raidz's parity is the XOR of the columns (OpenZFS `module/zfs/vdev_raidz.c`). It keeps the magic
    where the other columns have zeroes. Its numbers are then those of no chain.
    """
    words = _POINTER_WORDS.unpack_from(block, _NEXT_POINTER_AT)
    properties = words[_PROPERTIES_WORD]
    is_padded = not any(block[:_NEXT_POINTER_AT]) and not any(words[_PADDING_WORDS])
    return is_padded and (not properties or properties >> 40 & 0xFFFF in _OF_THE_LOG)


def _block(block: bytes) -> LogBlock:
    (used,) = _USED.unpack_from(block, _USED_AT)
    end = min(used, len(block))
    writes: list[tuple[int, int]] = []
    pointed: list[PointedWrite] = []
    place = _RECORDS_AT
    last_txg = 0
    changes = bytearray()
    while place + _RECORD.size <= end:
        kind, length, txg, _number = _RECORD.unpack_from(block, place)
        if length < _RECORD.size or not 0 < kind & ~_IGNORES_CASE <= _KIND_MAX:
            break  # no record: the block continues on another disk
        last_txg = max(last_txg, txg)
        if kind == _TX_WRITE and place + _RECORD.size + _WRITE.size <= end:
            _object, offset, count = _WRITE.unpack_from(block, place + _RECORD.size)
            if count > _LENGTH_MAX:
                break
            pointer = _pointed_write(block[place:end], length, offset)
            if pointer is None:
                writes.append((offset, count))
            else:
                pointed.append(pointer)
        elif kind != _TX_WRITE:
            changes += block[place : min(place + length, end)]
        place += length
    return LogBlock(
        writes=tuple(writes),
        is_whole=len(block) >= used and place >= used,
        pointed=tuple(pointed),
        place=_chain_place(block),
        txg=last_txg,
        changes=bytes(changes),
    )


def _chain_place(block: bytes) -> ChainPlace | None:
    first, second, dataset, next_number = _NEXT_KEY.unpack_from(block, _NEXT_KEY_AT)
    if next_number < _FIRST_NUMBER:
        return None
    return ChainPlace(chain=(first, second, dataset), number=next_number - 1)


def _pointed_write(record: bytes, length: int, offset: int) -> PointedWrite | None:
    """The pointed write of a record; None where the record holds its data, or they are all zeroes.

    Data follow the pointer, so a record that ends with the pointer has its data elsewhere
    (`zil_lwb_commit`).
    """
    if length != _POINTER_ONLY_BYTES or len(record) < length:
        return None
    words = _POINTER_WORDS.unpack_from(record, _POINTER_AT)
    properties = words[_PROPERTIES_WORD]
    addresses = [words[place * 2 : place * 2 + 2] for place in range(_ADDRESSES)]
    if properties & _EMBEDDED or not any(addresses[0]):
        return None
    block_bytes = ((properties & 0xFFFF) + 1) * _SIZE_UNIT_BYTES
    return PointedWrite(
        offset_bytes=offset - offset % block_bytes,
        length_bytes=block_bytes,
        txg=words[_BIRTH_WORD],
        extents=tuple(_extent(*address) for address in addresses if any(address)),
    )


def _extent(first: int, second: int) -> Extent:
    """A `dva_t`: 24 bits of size and, from bit 32 on, 24 bits of vdev; then 63 bits of offset."""
    return Extent(
        vdev=first >> 32 & 0xFFFFFF,
        offset_bytes=(second & _GANG - 1) * _SIZE_UNIT_BYTES,
        length_bytes=(first & 0xFFFFFF) * _SIZE_UNIT_BYTES,
    )


def chains_in(recording: Recording) -> frozenset[tuple[int, int]]:
    """The two random numbers of every chain of which a block was written: each boot has its own.

    They distinguish a chain's blocks from other content (`module/zfs/zil.c`, `zil_init_log_chain`).
    Their generator is seeded when ZFS is loaded (`module/os/linux/spl/spl-generic.c`). A resumed NAS
    loaded ZFS before it was saved. So the first NAS of a trial reloads ZFS when it is prepared, and
    the trial checks that the next NAS has other chains.
    """
    written = (event for event in recording.events if event.kind is Kind.WRITE_SUBMIT)
    blocks = (block for event in written for block in log_blocks_in(recording.payload(event)))
    return frozenset(block.place.chain[:2] for block in blocks if block.place is not None)


_ROOT_AT = 40
"""The offset of `ub_rootbp`, behind five numbers."""
_BYTES_MAX = 8 << 10
"""An uberblock is no larger (`MAX_UBERBLOCK_SHIFT`); a larger block of a file may begin like one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """The block from which all of a pool is found."""

    txg: int
    """The group of its birth: an older one, if the uberblock's own group changed nothing."""
    extents: tuple[Extent, ...]
    """Copies: each extent holds the whole block."""


def root_in(uberblock: bytes) -> Root | None:
    """The root block of an uberblock; None without one, and for a gang block."""
    if not _ROOT_AT + _POINTER_WORDS.size <= len(uberblock) <= _BYTES_MAX:
        return None
    words = _POINTER_WORDS.unpack_from(uberblock, _ROOT_AT)
    pairs = [words[at * 2 : at * 2 + 2] for at in range(_ADDRESSES)]
    is_elsewhere = words[_PROPERTIES_WORD] & _EMBEDDED or not any(pairs[0])
    if is_elsewhere or any(second & _GANG for _, second in pairs):
        return None
    return Root(txg=words[_BIRTH_WORD], extents=tuple(_extent(*p) for p in pairs if any(p)))


_AREA_BYTES = 256 * 1024
_LABEL_AT = 16 * 1024
"""The place of a label's configuration in its area (`include/sys/vdev_impl.h`, `vdev_label_t`)."""
_SPARE, _CACHE = 3, 4
"""`POOL_STATE_SPARE` and `POOL_STATE_L2CACHE` (`include/sys/fs/zfs.h`)."""


class Change(StrEnum):
    """How a write changes the pool's layout.

    `vdev_label_init` writes the labels of a disk that joins or leaves, its pads and its ring of
    uberblocks. They name transaction group 0, belong to no group, and are not flushed (OpenZFS
    `module/zfs/vdev_label.c`). The label of a joining disk names the group in which it was created.
    That of a leaving disk names group 0 (`spa_vdev_remove_log` in `module/zfs/vdev_removal.c`).
    """

    JOINS = "joined"
    LEAVES = "left"
    NONE = ""
    """It belongs to a disk that joins or leaves, and does not say which."""


def change_in(offset_bytes: int, payload: bytes) -> Change | None:
    """The change that a write of `vdev_label_init` makes; None for all other writes.

    The block layer may have merged the label with its neighbours. A spare or a cache device has another
    label, without any group (`vdev_aux_label_generate`). No uberblock depends on its content.
    """
    place = (_LABEL_AT - offset_bytes) % _AREA_BYTES
    label = payload[place : place + LABEL_BYTES]
    if role_of(label) is Role.LABEL:
        if _number_in_label(label, "state") in (_SPARE, _CACHE):
            return Change.LEAVES
        if _number_in_label(label, "txg") == 0:
            return Change.JOINS if _number_in_label(label, "create_txg") else Change.LEAVES
    is_uberblock = role_of(payload) is Role.UBERBLOCK
    return Change.NONE if is_uberblock and not txg_of(payload) else None


def _number_in_label(label: bytes, name: str) -> int | None:
    """The last number of this name, in XDR (`module/nvpair/nvpair.c`, `nvs_xdr_nvpair`).

    `create_txg` is in the trees of vdevs, too; the label's own is added behind them.
    """
    key = name.encode()
    head = struct.pack(">I", len(key)) + key + bytes(-len(key) % 4) + struct.pack(">II", 8, 1)
    place = label.rfind(head)
    found = label[place + len(head) : place + len(head) + 8]
    return None if place < 0 or len(found) < 8 else int.from_bytes(found, "big")
