"""The requests of a client to the shelf, and its knowledge of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torture.facts.recording.events import Kind

_PIECE_BYTES = 512


class Difference(AssertionError):
    """The shelf did something else than its contract says."""


class Verb(StrEnum):
    """The kinds of requests."""

    WRITE = "write"
    ZERO = "zero"
    TRIM = "trim"
    FLUSH = "flush"
    READ = "read"
    MARK = "mark"
    FREEZE = "freeze"


SUBMISSION_OF = {
    Verb.WRITE: Kind.WRITE_SUBMIT,
    Verb.ZERO: Kind.ZERO_SUBMIT,
    Verb.TRIM: Kind.TRIM_SUBMIT,
    Verb.FLUSH: Kind.FLUSH_SUBMIT,
    Verb.MARK: Kind.MARK,
}
"""The event by which the log knows it; the others are not logged."""


@dataclass(eq=False, kw_only=True, slots=True)
class Request:
    """One request. `issued` and `acked` count what the client did and saw, in its own order."""

    verb: Verb
    disk: int | None = None
    offset: int = 0
    length: int = 0
    fua: bool = False
    payload: bytes = b""
    freeze: Any = None
    """The command, as `control` takes it."""
    issued: int = 0
    acked: int | None = None
    data: bytes = b""
    """The outcome of a read."""

    def __str__(self) -> str:
        what = (
            f"{self.freeze}" if self.freeze else f"disk {self.disk} at {self.offset}+{self.length}"
        )
        fua = " FUA" if self.fua else ""
        return f"{self.verb} {what}{fua} (issued {self.issued}, acknowledged {self.acked})"


def payload(number: int, length: int) -> bytes:
    """Bytes that are found nowhere else: every 512 of them say whose they are, and which."""
    return b"".join(
        struct.pack("<QQ", number, place) * (_PIECE_BYTES // 16)
        for place in range(length // _PIECE_BYTES)
    )
