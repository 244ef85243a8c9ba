"""ONC RPC over TCP: records, calls and replies (RFC 5531, sections 9 and 11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torture.facts.wire.file_protocol import MESSAGE_BYTES_MAX, FileCall
from torture.facts.wire.pdus import Framing, Pdu
from torture.facts.wire.xdr import ShortError, Xdr

_MARK_BYTES = 4
_LAST_FRAGMENT = 1 << 31
_CALL, _REPLY = 0, 1
_ACCEPTED, _SUCCESS = 0, 0
_NFS_PROGRAM = 100003


def _length_of(head: bytes) -> int | None:
    """The length of a record. Linux sends each in one fragment (net/sunrpc/svcsock.c, xprtsock.c)."""
    mark = int.from_bytes(head[:_MARK_BYTES], "big")
    length = mark & ~_LAST_FRAGMENT
    return _MARK_BYTES + length if mark & _LAST_FRAGMENT and length <= MESSAGE_BYTES_MAX else None


FRAMING = Framing(
    base_bytes=_MARK_BYTES, length_of=_length_of, head_bytes=_MARK_BYTES + MESSAGE_BYTES_MAX
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RpcCall:
    """A call: its number, its procedure, and its arguments."""

    xid: int
    program: int
    version: int
    procedure: int
    arguments: Xdr


def call_in(record: Pdu) -> RpcCall | None:
    """The call in a record; None without one."""
    reader = Xdr(record.head[_MARK_BYTES:])
    try:
        xid, kind = reader.word(), reader.word()
        if kind != _CALL:
            return None
        _rpc_version, program, version, procedure = (reader.word() for _ in range(4))
        for _credential_and_verifier in range(2):
            reader.word()
            reader.opaque()
    except ShortError:
        return None
    return RpcCall(xid=xid, program=program, version=version, procedure=procedure, arguments=reader)


def replies_in(record: Pdu) -> Iterable[tuple[int, bytes]]:
    """The reply in a record, as its call's number and its results; nothing for a refused call."""
    reader = Xdr(record.head[_MARK_BYTES:])
    try:
        xid, kind, state = (reader.word() for _ in range(3))
        if kind != _REPLY or state != _ACCEPTED:
            return
        reader.word()
        reader.opaque()
        if reader.word() != _SUCCESS:
            return
    except ShortError:
        return
    yield xid, reader.rest()


class NfsServer:
    """The connections of one server of NFS; each version reads its own calls and replies."""

    framing = FRAMING
    version: int

    def __init__(self, port: int) -> None:
        self.port = port

    def read_call(self, procedure: int, arguments: Xdr) -> FileCall | None:
        """A call of this version; raises `ShortError`."""
        raise NotImplementedError

    def calls(self, to_nas: Pdu) -> Iterable[tuple[int, FileCall | None]]:
        """The call in a record."""
        call = call_in(to_nas)
        if call is None or (call.program, call.version) != (_NFS_PROGRAM, self.version):
            return
        try:
            yield call.xid, self.read_call(call.procedure, call.arguments)
        except ShortError:
            yield call.xid, None

    def answers(self, from_nas: Pdu) -> Iterable[tuple[int, bytes]]:
        """The reply in a record."""
        return replies_in(from_nas)
