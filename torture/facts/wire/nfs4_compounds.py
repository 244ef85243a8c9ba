"""NFSv4.1 and 4.2: compounds with a write, a commit, or an operation that changes names.

RFC 8881, sections 16 and 18. Linux fs/nfs/nfs4xdr.c has its client's compounds: SEQUENCE, the file or
directory, the operation itself, then GETATTR operations.
"""

from __future__ import annotations

from torture.facts.evidence.requests import FileKind
from torture.facts.wire.files_on_wire import FileCall, FileOutcome
from torture.facts.wire.rpc import NfsServer, Xdr, outcome_of_data

_COMPOUND = 1
_COMMIT, _CREATE, _LINK, _OPEN, _REMOVE, _RENAME, _SETATTR, _WRITE = 5, 6, 11, 18, 28, 29, 34, 38
_CHANGING = frozenset({_COMMIT, _CREATE, _LINK, _OPEN, _REMOVE, _RENAME, _SETATTR, _WRITE})
_PUTFH, _PUTROOTFH, _RESTOREFH, _SAVEFH, _SEQUENCE = 22, 24, 31, 32, 53
_WITHOUT_ARGUMENTS = (_PUTROOTFH, _RESTOREFH, _SAVEFH)
_STATE_BYTES, _VERIFIER_BYTES = 16, 8
_SEQUENCE_BYTES, _SEQUENCED_BYTES = 32, 36
"""The size of SEQUENCE's arguments and of its results (sections 18.46.1 and 18.46.2)."""
_LINK_TYPE, _DEVICE_TYPES = 5, (3, 4)
_OPEN_CREATE, _UNCHECKED, _GUARDED, _EXCLUSIVE, _EXCLUSIVE_41 = 1, 0, 1, 2, 3
_CLAIM_NULL = 0


class Nfs4OnWire(NfsServer):
    """The connections of one server."""

    version = 4

    def read_call(self, procedure: int, arguments: Xdr) -> FileCall | None:
        """The call, if it promises something."""
        if procedure != _COMPOUND:
            return None
        _tag, _minor_version = arguments.opaque(), arguments.word()
        file = b""
        for _ in range(arguments.word()):
            operation = arguments.word()
            if operation in _CHANGING:
                return _changing_operation(operation, file, arguments)
            if operation == _SEQUENCE:
                arguments.fixed(_SEQUENCE_BYTES)
            elif operation == _PUTFH:
                file = arguments.opaque()
            elif operation not in _WITHOUT_ARGUMENTS:
                return None
        return None

    def read_results(self, call: FileCall, results: Xdr) -> FileOutcome | None:
        """The outcome of that operation, whatever the result of the GETATTR operations behind it."""
        _status, _tag = results.word(), results.opaque()
        for _ in range(results.word()):
            operation, status = results.words(2)
            if status:
                return None
            if operation == call.operation:
                return _outcome(call, results)
            if operation == _SEQUENCE:
                results.fixed(_SEQUENCED_BYTES)
        return None


def _changing_operation(operation: int, file: bytes, reader: Xdr) -> FileCall | None:
    if operation == _WRITE:
        reader.fixed(_STATE_BYTES)
        return FileCall(
            kind=FileKind.WRITE,
            file=file,
            offset_bytes=reader.long(),
            is_forced=bool(reader.word()),
            content=reader.opaque(),
            operation=operation,
        )
    if operation == _COMMIT:
        return FileCall(
            kind=FileKind.COMMIT,
            file=file,
            offset_bytes=reader.long(),
            length_bytes=reader.word(),
            operation=operation,
        )
    if operation == _SETATTR:
        return FileCall(kind=FileKind.RESIZE, file=file, operation=operation)
    names = _names(operation, reader)
    return FileCall(kind=FileKind.NAME, names=names, operation=operation) if names else None


def _names(operation: int, reader: Xdr) -> tuple[bytes, ...]:
    if operation == _RENAME:
        return reader.opaque(), reader.opaque()
    if operation == _OPEN:
        return _name_to_create(reader)
    if operation == _CREATE:
        kind = reader.word()
        if kind == _LINK_TYPE:
            reader.opaque()
        elif kind in _DEVICE_TYPES:
            reader.long()
    return (reader.opaque(),)


def _name_to_create(reader: Xdr) -> tuple[bytes, ...]:
    """The name that an OPEN may create (section 18.16.1)."""
    _seqid_access_deny, _client, _owner = reader.words(3), reader.long(), reader.opaque()
    if reader.word() != _OPEN_CREATE:
        return ()
    how = reader.word()
    if how in (_EXCLUSIVE, _EXCLUSIVE_41):
        reader.fixed(_VERIFIER_BYTES)
    if how in (_UNCHECKED, _GUARDED, _EXCLUSIVE_41):
        _attributes, _values = reader.words(reader.word()), reader.opaque()
    return (reader.opaque(),) if reader.word() == _CLAIM_NULL else ()


def _outcome(call: FileCall, results: Xdr) -> FileOutcome | None:
    if call.kind in (FileKind.WRITE, FileKind.COMMIT):
        return outcome_of_data(call.kind, results)
    if call.operation == _OPEN:
        # `change_info4` of the directory: an OPEN may find an existing file
        _state, _is_atomic = results.fixed(_STATE_BYTES), results.word()
        if results.long() == results.long():
            return None
    return FileOutcome()
