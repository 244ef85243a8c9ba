"""The interface of a protocol that carries files over TCP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from torture.facts.evidence.file_requests import FileKind
from torture.facts.wire.pdus import Framing, Pdu

MESSAGE_BYTES_MAX = 1 << 24
"""The largest message that any server here accepts (Linux `NFSSVC_MAXBLKSIZE`, ksmbd's 8 MiB)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileCall:
    """A request that was sent, before its answer is known."""

    kind: FileKind
    file: bytes = b""
    offset_bytes: int = 0
    length_bytes: int = 0
    content: bytes = b""
    """The data of a write."""
    is_forced: bool = False
    names: tuple[bytes, ...] = ()
    operation: int = 0
    """Its number in a compound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOutcome:
    """A good answer: the server executed the call."""

    count_bytes: int = 0
    """How many bytes of a write the server executed."""
    is_stable: bool = False
    """Whether the server calls the write stable already."""
    verifier: bytes = b""


class FileProtocol(Protocol):
    """A protocol that carries files over TCP."""

    @property
    def port(self) -> int:
        """The NAS's TCP port."""

    @property
    def framing(self) -> Framing:
        """The framing of both directions; units are read whole."""

    def calls(self, to_nas: Pdu) -> Iterable[tuple[int, FileCall | None]]:
        """The requests in a unit, each with its tag; None for a request without a promise."""

    def answers(self, from_nas: Pdu) -> Iterable[tuple[int, bytes]]:
        """The answers in a unit, each with its tag."""

    def outcome(self, call: FileCall, answer: bytes) -> FileOutcome | None:
        """The outcome of a call from its answer; None if the call failed or changed nothing."""
