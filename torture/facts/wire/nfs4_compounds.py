"""NFSv4.1 and 4.2: compounds with a write, a commit, or an operation that changes names.

RFC 8881, sections 16 and 18. Linux fs/nfs/nfs4xdr.c has its client's compounds: SEQUENCE, the file or
directory, the operation itself, then GETATTR operations.
"""

from __future__ import annotations

from torture.facts.evidence.file_requests import FileKind
from torture.facts.wire.files_on_wire import FileCall, FileOutcome
from torture.facts.wire.rpc import NfsServer, ShortError, Xdr

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
        return _call(arguments) if procedure == _COMPOUND else None

    def outcome(self, call: FileCall, answer: bytes) -> FileOutcome | None:
        """The outcome of that operation, whatever the result of the GETATTR operations behind it."""
        reader = Xdr(answer)
        try:
            reader.word()
            reader.opaque()
            for _ in range(reader.word()):
                operation, status = reader.word(), reader.word()
                if status:
                    return None
                if operation == call.operation:
                    return _outcome(operation, reader)
                if operation == _SEQUENCE:
                    reader.fixed(_SEQUENCED_BYTES)
        except ShortError:
            pass
        return None


def _call(reader: Xdr) -> FileCall | None:
    reader.opaque()
    reader.word()
    file = b""
    for _ in range(reader.word()):
        operation = reader.word()
        if operation in _CHANGING:
            return _changing_operation(operation, file, reader)
        if operation == _SEQUENCE:
            reader.fixed(_SEQUENCE_BYTES)
        elif operation == _PUTFH:
            file = reader.opaque()
        elif operation not in _WITHOUT_ARGUMENTS:
            return None
    return None


def _changing_operation(operation: int, file: bytes, reader: Xdr) -> FileCall | None:
    if operation == _WRITE:
        reader.fixed(_STATE_BYTES)
        offset, stable = reader.long(), reader.word()
        return FileCall(
            kind=FileKind.WRITE,
            file=file,
            offset_bytes=offset,
            content=reader.opaque(),
            is_forced=bool(stable),
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
    for _seqid_access_deny in range(3):
        reader.word()
    reader.long()
    reader.opaque()
    if reader.word() != _OPEN_CREATE:
        return ()
    how = reader.word()
    if how in (_EXCLUSIVE, _EXCLUSIVE_41):
        reader.fixed(_VERIFIER_BYTES)
    if how in (_UNCHECKED, _GUARDED, _EXCLUSIVE_41):
        for _attribute in range(reader.word()):
            reader.word()
        reader.opaque()
    return (reader.opaque(),) if reader.word() == _CLAIM_NULL else ()


def _outcome(operation: int, reader: Xdr) -> FileOutcome | None:
    if operation == _WRITE:
        count, stable = reader.word(), reader.word()
        return FileOutcome(
            count_bytes=count, is_stable=bool(stable), verifier=reader.fixed(_VERIFIER_BYTES)
        )
    if operation == _COMMIT:
        return FileOutcome(verifier=reader.fixed(_VERIFIER_BYTES))
    if operation == _OPEN:
        reader.fixed(_STATE_BYTES)
        return FileOutcome() if _has_changed(reader) else None
    return FileOutcome()


def _has_changed(reader: Xdr) -> bool:
    """Whether a directory changed (`change_info4`): an OPEN may find an existing file."""
    reader.word()
    return reader.long() != reader.long()
