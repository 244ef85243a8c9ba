"""SMB 3.1.1: writes and flushes; a guest's messages are neither signed nor encrypted.

[MS-SMB2] 2.1 (transport), 2.2.1 (header), 2.2.17 to 2.2.22 (flush and write), 2.2.39 (SET_INFO); Linux
fs/smb/common/smb2pdu.h. Names are left out: ksmbd answers a rename before it is stable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from torture.facts.evidence.requests import FileKind
from torture.facts.wire.files_on_wire import MESSAGE_BYTES_MAX, FileCall, FileOutcome
from torture.facts.wire.pdus import Framing, Pdu

_LENGTH_BYTES = 4
_HEADER = Struct("<4s2xHIHHIIQ32x")
"""Protocol, credits, status, command, credits, flags, offset of the next message, number."""
_PROTOCOL = b"\xfeSMB"
_FLUSH, _WRITE, _SET_INFO = 0x07, 0x09, 0x11
_IS_ANSWER = 1
_GOOD, _PENDING = 0, 0x103
_WRITE_CALL = Struct("<2xHIQ16s12xI")
"""Behind the structure's size: offset and length of the data, offset in the file, handle, flags."""
_FLUSH_CALL = Struct("<8x16s")
_SET_INFO_CALL = Struct("<16x16s")
_WRITE_ANSWER = Struct("<4xI")
_WRITE_THROUGH = 1


def _length_of(head: bytes) -> int | None:
    length = int.from_bytes(head[:_LENGTH_BYTES], "big")
    return _LENGTH_BYTES + length if length <= MESSAGE_BYTES_MAX else None


class Smb2OnWire:
    """The connections of one server."""

    framing = Framing(
        base_bytes=_LENGTH_BYTES, length_of=_length_of, head_bytes=_LENGTH_BYTES + MESSAGE_BYTES_MAX
    )

    def __init__(self, port: int) -> None:
        self.port = port

    def calls(self, to_nas: Pdu) -> Iterable[tuple[int, FileCall | None]]:
        """The calls in the messages of a unit."""
        for number, command, _status, message in _messages(to_nas, is_answer=False):
            yield number, _call(command, message)

    def answers(self, from_nas: Pdu) -> Iterable[tuple[int, bytes]]:
        """The final answers in a unit: a server may first answer that the call is pending."""
        for number, _command, status, message in _messages(from_nas, is_answer=True):
            if status != _PENDING:
                yield number, status.to_bytes(4, "little") + message[_HEADER.size :]

    def outcome(self, call: FileCall, answer: bytes) -> FileOutcome | None:
        """The outcome of a call from its answer."""
        if int.from_bytes(answer[:4], "little") != _GOOD:
            return None
        if call.kind is not FileKind.WRITE:
            return FileOutcome()
        if len(answer) < 4 + _WRITE_ANSWER.size:
            return None
        (count,) = _WRITE_ANSWER.unpack_from(answer, 4)
        return FileOutcome(count_bytes=count, is_stable=call.is_forced)


def _messages(unit: Pdu, *, is_answer: bool) -> Iterator[tuple[int, int, int, bytes]]:
    """Number, command, status and content of each message in a unit; nothing for an encrypted one."""
    left = unit.head[_LENGTH_BYTES:]
    while len(left) >= _HEADER.size:
        protocol, _, status, command, _, flags, following, number = _HEADER.unpack_from(left)
        if protocol != _PROTOCOL or bool(flags & _IS_ANSWER) is not is_answer:
            return
        yield number, command, status, left[:following] if following else left
        if not following:
            return
        left = left[following:]


def _call(command: int, message: bytes) -> FileCall | None:
    body = message[_HEADER.size :]
    if command == _WRITE and len(body) >= _WRITE_CALL.size:
        begin, length, offset, file, flags = _WRITE_CALL.unpack_from(body)
        return FileCall(
            kind=FileKind.WRITE,
            file=file,
            offset_bytes=offset,
            content=message[begin : begin + length],
            is_forced=bool(flags & _WRITE_THROUGH),
        )
    if command == _FLUSH and len(body) >= _FLUSH_CALL.size:
        (file,) = _FLUSH_CALL.unpack_from(body)
        return FileCall(kind=FileKind.COMMIT, file=file)
    if command == _SET_INFO and len(body) >= _SET_INFO_CALL.size:
        (file,) = _SET_INFO_CALL.unpack_from(body)
        return FileCall(kind=FileKind.RESIZE, file=file)
    return None
