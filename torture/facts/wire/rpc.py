"""ONC RPC over TCP: records, calls and replies (RFC 5531, sections 9 and 11), in XDR."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

from torture.facts.evidence.requests import FileKind
from torture.facts.wire.files_on_wire import MESSAGE_BYTES_MAX, FileCall, FileOutcome
from torture.facts.wire.pdus import Framing, Pdu

_MARK_BYTES = 4
_LAST_FRAGMENT = 1 << 31
_CALL, _REPLY = 0, 1
_ACCEPTED, _SUCCESS = 0, 0
_NFS_PROGRAM = 100003
_VERIFIER_BYTES = 8

_WORD, _LONG = Struct(">I"), Struct(">Q")


class ShortError(ValueError):
    """The bytes end before the value does."""


class Xdr:
    """Reads XDR (RFC 4506), a value at a time; each raises `ShortError` at the end of the bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def word(self) -> int:
        """An unsigned integer (section 4.2), an enumeration or a boolean."""
        return self._number(_WORD)

    def words(self, count: int) -> tuple[int, ...]:
        """So many of them."""
        return tuple(self.word() for _ in range(count))

    def long(self) -> int:
        """An unsigned hyper integer (section 4.5)."""
        return self._number(_LONG)

    def _number(self, layout: Struct) -> int:
        try:
            (value,) = layout.unpack_from(self._content, self._at)
        except error as short:
            raise ShortError(str(short)) from short
        self._at += layout.size
        return int(value)

    def fixed(self, length: int) -> bytes:
        """Opaque data of a fixed length (section 4.9)."""
        piece = self._content[self._at : self._at + length]
        if len(piece) < length:
            raise ShortError(f"{length} bytes expected, {len(piece)} left")
        self._at += -(-length // _WORD.size) * _WORD.size
        return piece

    def opaque(self) -> bytes:
        """Opaque data or a string behind its length (sections 4.10 and 4.11)."""
        return self.fixed(self.word())

    def rest(self) -> bytes:
        """The remaining bytes."""
        return self._content[self._at :]


def _length_of(head: bytes) -> int | None:
    """The length of a record. Linux sends each in one fragment (net/sunrpc/svcsock.c, xprtsock.c)."""
    mark = int.from_bytes(head[:_MARK_BYTES], "big")
    length = mark & ~_LAST_FRAGMENT
    return _MARK_BYTES + length if mark & _LAST_FRAGMENT and length <= MESSAGE_BYTES_MAX else None


FRAMING = Framing(
    base_bytes=_MARK_BYTES, length_of=_length_of, head_bytes=_MARK_BYTES + MESSAGE_BYTES_MAX
)


class NfsServer:
    """The connections of one server of NFS; each version reads its own calls and replies."""

    framing = FRAMING
    version: int

    def __init__(self, port: int) -> None:
        self.port = port

    def read_call(self, procedure: int, arguments: Xdr) -> FileCall | None:
        """A call of this version, if it promises something; raises `ShortError`."""
        raise NotImplementedError

    def read_results(self, call: FileCall, results: Xdr) -> FileOutcome | None:
        """The outcome of a call; None if it failed. Raises `ShortError`."""
        raise NotImplementedError

    def calls(self, to_nas: Pdu) -> Iterable[tuple[int, FileCall | None]]:
        """The call in a record, behind its credential and verifier; nothing for other records."""
        reader = Xdr(to_nas.head[_MARK_BYTES:])
        try:
            xid, kind, _rpc_version, *server, procedure = reader.words(6)
            if kind != _CALL or server != [_NFS_PROGRAM, self.version]:
                return
            _credential, _verifier = [(reader.word(), reader.opaque()) for _ in range(2)]
        except ShortError:
            return
        try:
            yield xid, self.read_call(procedure, reader)
        except ShortError:
            yield xid, None

    def answers(self, from_nas: Pdu) -> Iterable[tuple[int, bytes]]:
        """The reply in a record, as its call's number and its results; nothing for a refused call."""
        reader = Xdr(from_nas.head[_MARK_BYTES:])
        try:
            xid, *state = reader.words(3)
            _verifier = reader.word(), reader.opaque()
            is_executed = state == [_REPLY, _ACCEPTED] and reader.word() == _SUCCESS
        except ShortError:
            return
        if is_executed:
            yield xid, reader.rest()

    def outcome(self, call: FileCall, answer: bytes) -> FileOutcome | None:
        """The outcome of a call from its results."""
        try:
            return self.read_results(call, Xdr(answer))
        except ShortError:
            return None


def outcome_of_data(kind: FileKind, results: Xdr) -> FileOutcome:
    """The results of a WRITE or a COMMIT from the written count, or the verifier, on."""
    count, stable = results.words(2) if kind is FileKind.WRITE else (0, 0)
    verifier = results.fixed(_VERIFIER_BYTES)
    return FileOutcome(count_bytes=count, is_stable=bool(stable), verifier=verifier)
