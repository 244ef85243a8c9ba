"""The facts about a protocol by which files are reached over TCP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from torture.facts.evidence.file_requests import FileKind
from torture.facts.wire.pdus import Framing, Pdu

MESSAGE_BYTES_MAX = 1 << 24
"""No server here takes more in one message (Linux `NFSSVC_MAXBLKSIZE`, ksmbd's 8 MiB)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileCall:
    """A request that was sent, before its answer is known."""

    kind: FileKind
    file: bytes = b""
    offset_bytes: int = 0
    length_bytes: int = 0
    content: bytes = b""
    """Of a write."""
    is_forced: bool = False
    names: tuple[bytes, ...] = ()
    operation: int = 0
    """Its number in a compound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOutcome:
    """A good answer: the server did it."""

    count_bytes: int = 0
    """Of a write: so much of it."""
    is_stable: bool = False
    """The server says that the write is stable already."""
    verifier: bytes = b""


class FileProtocol(Protocol):
    """How files are reached over TCP."""

    @property
    def port(self) -> int:
        """Of the NAS."""

    @property
    def framing(self) -> Framing:
        """Of both directions; units are wanted whole."""

    def calls(self, to_nas: Pdu) -> Iterable[tuple[int, FileCall | None]]:
        """The requests in a unit, each behind its tag; None of a request that promises nothing."""

    def answers(self, from_nas: Pdu) -> Iterable[tuple[int, bytes]]:
        """The answers in a unit, each behind its tag."""

    def outcome(self, call: FileCall, answer: bytes) -> FileOutcome | None:
        """What an answer says of its call; None if the call failed or changed nothing."""
