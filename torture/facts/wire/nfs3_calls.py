"""NFSv3: writes, commits, and calls that change names (RFC 1813, section 3.3)."""

from __future__ import annotations

from torture.facts.evidence.requests import FileKind
from torture.facts.wire.files_on_wire import FileCall, FileOutcome
from torture.facts.wire.rpc import NfsServer, Xdr, outcome_of_data

_SETATTR, _WRITE, _CREATE, _REMOVE, _RMDIR, _RENAME, _LINK, _COMMIT = 2, 7, 8, 12, 13, 14, 15, 21
_CREATING = (9, 10, 11)
"""MKDIR, SYMLINK and MKNOD."""
_UNCHECKED = 0
"""An UNCHECKED CREATE may find an existing file, and then changes nothing."""
_ATTRIBUTES_BYTES = 84
_OLD_ATTRIBUTES_BYTES = 24


class Nfs3OnWire(NfsServer):
    """The connections of one server."""

    version = 3

    def read_call(self, procedure: int, arguments: Xdr) -> FileCall | None:
        """The call, if it promises something."""
        if procedure == _WRITE:
            return FileCall(
                kind=FileKind.WRITE,
                file=arguments.opaque(),
                offset_bytes=arguments.long(),
                is_forced=bool(arguments.words(2)[1]),  # behind the count of bytes
                content=arguments.opaque(),
            )
        if procedure == _COMMIT:
            return FileCall(
                kind=FileKind.COMMIT,
                file=arguments.opaque(),
                offset_bytes=arguments.long(),
                length_bytes=arguments.word(),
            )
        if procedure == _SETATTR:
            return FileCall(kind=FileKind.RESIZE, file=arguments.opaque())
        names = _names(procedure, arguments)
        return FileCall(kind=FileKind.NAME, names=names) if names else None

    def read_results(self, call: FileCall, results: Xdr) -> FileOutcome | None:
        """The outcome of a call: failed, stable, or unstable under a verifier."""
        if results.word():
            return None
        if call.kind not in (FileKind.WRITE, FileKind.COMMIT):
            return FileOutcome()
        # `wcc_data` (section 2.6): attributes from before and after the call, each optional
        for length in (_OLD_ATTRIBUTES_BYTES, _ATTRIBUTES_BYTES):
            if results.word():
                results.fixed(length)
        return outcome_of_data(call.kind, results)


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
