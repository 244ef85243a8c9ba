"""NVMe over TCP: the capsules of commands and of their responses.

- NVMe TCP Transport Specification 1.0, section 3.6 (PDUs);
- NVMe Base Specification 2.0, 3.3.3 (entries of queues);
- NVM Command Set Specification 1.0, 3.2 (flush and write);
- Linux `include/linux/nvme-tcp.h` and `nvme.h`.
"""

from __future__ import annotations

from struct import Struct

from torture.facts.evidence.requests import BlockKind
from torture.facts.wire.disk_requests import Answer, Command
from torture.facts.wire.pdus import Framing, Pdu

_HEADER = Struct("<BBBBI")
"""Type, flags, length of the header, offset of the data, length of the PDU."""
_COMMAND = Struct("<BBH36xQI")
"""Opcode, flags, identifier; from byte 40 on the first block, and a word with flags above the count."""
_COMPLETION = Struct("<12xHH")
"""Identifier, and the status, whose lowest bit is used by queues in memory only."""
_COMMAND_CAPSULE, _RESPONSE_CAPSULE = 4, 5
_TYPES = range(10)
_FABRICS, _CONNECT = 0x7F, 0x01
_FABRICS_TYPE_AT, _QUEUE_AT = 4, 42
"""Offsets in a fabrics command (`struct nvmf_connect_command`)."""
_FUA = 1 << 30
_HEAD_BYTES = _HEADER.size + 64
_LENGTH_MAX_BYTES = 1 << 26


def _length_of(head: bytes) -> int | None:
    pdu_type, _, header_bytes, _, length = _HEADER.unpack(head[: _HEADER.size])
    if pdu_type not in _TYPES or not _HEADER.size <= header_bytes <= length <= _LENGTH_MAX_BYTES:
        return None
    return int(length)


class NvmeTcpOnWire:
    """The I/O queues of one controller, each a connection; the admin queue is ignored."""

    framing = Framing(base_bytes=_HEADER.size, length_of=_length_of, head_bytes=_HEAD_BYTES)

    def __init__(self, port: int) -> None:
        self.port = port

    def is_ignored(self, to_nas: Pdu) -> bool:
        """Whether the connection is queue 0, the admin queue: its opcodes have other meanings."""
        entry = _command_of(to_nas)
        if entry is None or entry[0] != _FABRICS or entry[_FABRICS_TYPE_AT] != _CONNECT:
            return False
        return not any(entry[_QUEUE_AT : _QUEUE_AT + 2])

    def command(self, to_nas: Pdu) -> Command | int | None:
        """The flush or write in a capsule."""
        entry = _command_of(to_nas)
        if entry is None:
            return None
        opcode, _, tag, first, count = _COMMAND.unpack(entry[: _COMMAND.size])
        match opcode:
            case 0x00:
                return Command(tag=tag, kind=BlockKind.FLUSH)
            case 0x01:
                return Command(
                    tag=tag,
                    kind=BlockKind.WRITE,
                    first_sector=first,
                    sectors=(count & 0xFFFF) + 1,
                    is_forced=bool(count & _FUA),
                )
        return int(tag)

    def answer(self, from_nas: Pdu) -> Answer | None:
        """The response in a capsule."""
        if from_nas.head[0] != _RESPONSE_CAPSULE or len(from_nas.head) < _HEADER.size + 16:
            return None
        tag, status = _COMPLETION.unpack_from(from_nas.head, _HEADER.size)
        return Answer(tag=tag, is_good=status >> 1 == 0)


def _command_of(pdu: Pdu) -> bytes | None:
    """The submission queue's entry in a capsule."""
    if pdu.head[0] != _COMMAND_CAPSULE or len(pdu.head) < _HEAD_BYTES:
        return None
    return pdu.head[_HEADER.size :]
