"""iSCSI: SCSI commands and their responses.

RFC 7143, 11.2 (basic header segments), 11.3 and 11.4 (SCSI command and response); SBC-4, 5.2 and
following (the commands themselves); Linux `include/scsi/iscsi_proto.h`.
"""

from __future__ import annotations

from struct import Struct

from torture.facts.evidence.requests import BlockKind
from torture.facts.wire.disk_requests import Answer, Command
from torture.facts.wire.pdus import Framing, Pdu

_HEAD_BYTES = 48
_OPCODE_MASK = 0x3F
_SCSI_COMMAND, _SCSI_RESPONSE = 0x01, 0x21
_OPCODES = frozenset({*range(0x00, 0x07), 0x10, *range(0x20, 0x27), 0x31, 0x32, 0x3F})
_AHS_AT, _DATA_LENGTH_AT, _TAG_AT, _CDB_AT = 4, slice(5, 8), slice(16, 20), 32
_RESPONSE_AT, _STATUS_AT = 2, 3
_WORD_BYTES = 4
_CDB_6, _CDB_10, _CDB_12, _CDB_16 = (
    Struct(">IB"),
    Struct(">2xIxH"),
    Struct(">2xII"),
    Struct(">2xQI"),
)
"""First block and number of blocks in a CDB, by the CDB's length."""
_WRITES = {0x0A: _CDB_6, 0x2A: _CDB_10, 0xAA: _CDB_12, 0x8A: _CDB_16}
_WRITE_6_MASK, _WRITE_6_BLOCKS = 0x1FFFFF, 256
"""WRITE(6) has its opcode before the first block; a count of 0 means 256 blocks."""
_SYNCS = {0x35: _CDB_10, 0x91: _CDB_16}
"""SYNCHRONIZE CACHE; first block 0 with count 0 means the whole cache."""
_FUA = 1 << 3
_IMMEDIATE = 1 << 1


def _length_of(head: bytes) -> int | None:
    if head[0] & _OPCODE_MASK not in _OPCODES:
        return None
    data_bytes = int.from_bytes(head[_DATA_LENGTH_AT], "big")
    padded_bytes = -(-data_bytes // _WORD_BYTES) * _WORD_BYTES
    return _HEAD_BYTES + head[_AHS_AT] * _WORD_BYTES + padded_bytes


class IscsiOnWire:
    """The connections of one target with one LUN, without digests."""

    framing = Framing(base_bytes=_HEAD_BYTES, length_of=_length_of, head_bytes=_HEAD_BYTES)

    def __init__(self, port: int) -> None:
        self.port = port

    def is_ignored(self, to_nas: Pdu) -> bool:
        """Ignores no connection."""
        return False

    def command(self, to_nas: Pdu) -> Command | int | None:
        """The write in a unit, or the SYNCHRONIZE CACHE that is answered only once it is done."""
        if to_nas.head[0] & _OPCODE_MASK != _SCSI_COMMAND:
            return None
        tag = int.from_bytes(to_nas.head[_TAG_AT], "big")
        cdb = to_nas.head[_CDB_AT:]
        if (layout := _SYNCS.get(cdb[0])) is not None:
            is_whole = not any(layout.unpack_from(cdb)) and not cdb[1] & _IMMEDIATE
            return Command(tag=tag, kind=BlockKind.FLUSH) if is_whole else tag
        if (layout := _WRITES.get(cdb[0])) is None:
            return tag
        first, sectors = layout.unpack_from(cdb)
        if is_short := layout is _CDB_6:
            first, sectors = first & _WRITE_6_MASK, sectors or _WRITE_6_BLOCKS
        return Command(
            tag=tag,
            kind=BlockKind.WRITE,
            first_sector=first,
            sectors=sectors,
            is_forced=not is_short and bool(cdb[1] & _FUA),
        )

    def answer(self, from_nas: Pdu) -> Answer | None:
        """The SCSI response in a unit; good if the target completed the command with GOOD."""
        if from_nas.head[0] & _OPCODE_MASK != _SCSI_RESPONSE:
            return None
        is_good = from_nas.head[_RESPONSE_AT] == 0 and from_nas.head[_STATUS_AT] == 0
        return Answer(tag=int.from_bytes(from_nas.head[_TAG_AT], "big"), is_good=is_good)
