"""A protocol that carries files over TCP, and the requests in it: each call with its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from torture.facts.evidence.requests import FileKind, FileRequest, whole_sectors_of
from torture.facts.wire.frames import Frame
from torture.facts.wire.pdus import Exchange, Framing, Pdu, exchanges_in

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


@dataclass(frozen=True, kw_only=True, slots=True)
class FileWire:
    """The wire of files that the client's own kernel mounts."""

    protocol: FileProtocol

    def requests(self, frames: Iterable[Frame], *, sector_bytes: int) -> tuple[FileRequest, ...]:
        """The calls that the server executed, in the order of its answers; `sector_bytes` is unused.

        Raises what `torture.facts.wire.pdus.exchanges_in` raises.
        """
        return tuple(self._requests(frames))

    def _requests(self, frames: Iterable[Frame]) -> Iterator[FileRequest]:
        first_ns: dict[tuple[int, FileCall], int] = {}

        def asked(pdu: Pdu) -> Iterator[tuple[int, FileCall | None]]:
            for tag, call in self.protocol.calls(pdu):
                if call is not None:
                    first_ns.setdefault((tag, call), pdu.begun_ns)
                yield tag, call

        for exchange in exchanges_in(
            frames,
            port=self.protocol.port,
            framing=self.protocol.framing,
            asked=asked,
            answered=self.protocol.answers,
        ):
            # a call that is sent again may have been executed the first time (RFC 8881, 2.10.6)
            begun_ns = first_ns[exchange.tag, exchange.question]
            if (request := self._request(exchange, begun_ns)) is not None:
                yield request

    def _request(self, exchange: Exchange[FileCall, bytes], begun_ns: int) -> FileRequest | None:
        call = exchange.question
        outcome = self.protocol.outcome(call, exchange.answer)
        if outcome is None:
            return None
        content = call.content[: outcome.count_bytes]
        is_write = call.kind is FileKind.WRITE
        return FileRequest(
            kind=call.kind,
            submitted_ns=begun_ns,
            completed_ns=exchange.completed_ns,
            file=call.file.hex(),
            offset_bytes=call.offset_bytes,
            length_bytes=len(content) if is_write else call.length_bytes,
            is_forced=outcome.is_stable,
            verifier=outcome.verifier.hex(),
            sectors=whole_sectors_of(content, offset_bytes=call.offset_bytes) if is_write else (),
            names=tuple(name.decode("latin-1") for name in call.names),
        )
