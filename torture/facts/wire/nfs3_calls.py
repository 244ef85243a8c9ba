"""NFSv3: writes, commits, and calls that change names (RFC 1813, section 3.3)."""

from __future__ import annotations

from torture.facts.evidence.file_requests import FileKind
from torture.facts.wire.files_on_wire import FileCall, FileOutcome
from torture.facts.wire.rpc import NfsServer, ShortError, Xdr

_SETATTR, _WRITE, _CREATE, _REMOVE, _RMDIR, _RENAME, _LINK, _COMMIT = 2, 7, 8, 12, 13, 14, 15, 21
_CREATING = (9, 10, 11)
"""MKDIR, SYMLINK and MKNOD."""
_UNCHECKED = 0
"""An UNCHECKED CREATE may find an existing file, and then changes nothing."""
_ATTRIBUTES_BYTES = 84
_OLD_ATTRIBUTES_BYTES = 24
_VERIFIER_BYTES = 8


class Nfs3OnWire(NfsServer):
    """The connections of one server."""

    version = 3

    def read_call(self, procedure: int, arguments: Xdr) -> FileCall | None:
        """The call, if it promises something."""
        return _call(procedure, arguments)

    def outcome(self, call: FileCall, answer: bytes) -> FileOutcome | None:
        """The outcome of a call: failed, stable, or unstable under a verifier."""
        reader = Xdr(answer)
        try:
            if reader.word():
                return None
            if call.kind is FileKind.WRITE:
                _skip_attributes(reader)
                count, stable = reader.word(), reader.word()
                return FileOutcome(
                    count_bytes=count,
                    is_stable=bool(stable),
                    verifier=reader.fixed(_VERIFIER_BYTES),
                )
            if call.kind is FileKind.COMMIT:
                _skip_attributes(reader)
                return FileOutcome(verifier=reader.fixed(_VERIFIER_BYTES))
        except ShortError:
            return None
        return FileOutcome()


def _call(procedure: int, reader: Xdr) -> FileCall | None:
    if procedure == _WRITE:
        file, offset, _count, stable = reader.opaque(), reader.long(), reader.word(), reader.word()
        return FileCall(
            kind=FileKind.WRITE,
            file=file,
            offset_bytes=offset,
            content=reader.opaque(),
            is_forced=bool(stable),
        )
    if procedure == _COMMIT:
        return FileCall(
            kind=FileKind.COMMIT,
            file=reader.opaque(),
            offset_bytes=reader.long(),
            length_bytes=reader.word(),
        )
    if procedure == _SETATTR:
        return FileCall(kind=FileKind.RESIZE, file=reader.opaque())
    names = _names(procedure, reader)
    return FileCall(kind=FileKind.NAME, names=names) if names else None


def _names(procedure: int, reader: Xdr) -> tuple[bytes, ...]:
    """The names that a call creates, moves or removes; none for a call that may change nothing."""

    def name_there() -> bytes:
        reader.opaque()
        return reader.opaque()

    if procedure == _CREATE:
        name = name_there()
        return () if reader.word() == _UNCHECKED else (name,)
    if procedure in (*_CREATING, _REMOVE, _RMDIR):
        return (name_there(),)
    if procedure == _RENAME:
        return name_there(), name_there()
    if procedure == _LINK:
        reader.opaque()
        return (name_there(),)
    return ()


def _skip_attributes(reader: Xdr) -> None:
    """Skip `wcc_data` (section 2.6): attributes from before and after the call, each optional."""
    for length in (_OLD_ATTRIBUTES_BYTES, _ATTRIBUTES_BYTES):
        if reader.word():
            reader.fixed(length)
