"""From TCP segments to the units of a protocol, each of which begins with its length.

Segments may come twice, late or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_NUMBERS = 1 << 32
"""Sequence numbers wrap after this many bytes (RFC 9293, 3.4)."""
_AHEAD_MAX = 1024
"""So many segments after a gap, the missing bytes were never captured, and will not be sent again."""


def _distance(start: int, to: int) -> int:
    """The distance from one sequence number to another; negative if that came before."""
    return (to - start + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2


@dataclass(kw_only=True)
class Stream:
    """One direction of a connection, from its first byte on.

    A byte is returned once all bytes before it are; after a byte that was never captured, none is.
    """

    next_sequence: int
    is_lost: bool = False
    _ahead: dict[int, bytes] = field(default_factory=dict)
    """Early segments, by sequence number."""

    def feed(self, sequence: int, content: bytes) -> bytes:
        """Add a segment; returns the bytes that are in order now."""
        if self.is_lost:
            return b""
        if len(self._ahead.get(sequence, b"")) < len(content):
            self._ahead[sequence] = content
        in_order = bytearray()
        while (begin := self._next_piece()) is not None:
            piece = self._ahead.pop(begin)
            new = piece[_distance(begin, self.next_sequence) :]
            self.next_sequence = (self.next_sequence + len(new)) % _NUMBERS
            in_order += new
        if len(self._ahead) > _AHEAD_MAX:
            self.is_lost = True
            self._ahead.clear()
        return bytes(in_order)

    def _next_piece(self) -> int | None:
        """The sequence number of a segment that is not after a gap."""
        return next((x for x in self._ahead if _distance(self.next_sequence, x) <= 0), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Framing:
    """The lengths of a protocol's units."""

    base_bytes: int
    """This many first bytes of a unit state its length; no unit is shorter."""
    length_of: Callable[[bytes], int | None]
    """The length of a unit with these first bytes, its data included; None if no unit begins so."""
    head_bytes: int
    """This many first bytes of a unit are kept, if it is that long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pdu:
    """The head of a unit, and when its first byte and the head's last byte passed."""

    head: bytes
    begun_ns: int
    known_ns: int


class PduSplitter:
    """Splits one stream; `is_lost` once bytes in it begin no unit: then it yields no more."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self.is_lost = False
        self._begin()

    def _begin(self) -> None:
        self._head = bytearray()
        self._wanted = self._framing.base_bytes
        self._length: int | None = None
        self._to_skip = 0
        self._begun_ns = 0

    def feed(self, content: bytes, *, time_ns: int) -> Iterator[Pdu]:
        """The units whose heads are complete now; `content` passed at this time."""
        at = 0
        while at < len(content) and not self.is_lost:
            if self._to_skip:
                skipped = min(self._to_skip, len(content) - at)
                self._to_skip -= skipped
                at += skipped
                continue
            if not self._head:
                self._begun_ns = time_ns
            piece = content[at : at + self._wanted - len(self._head)]
            self._head += piece
            at += len(piece)
            if len(self._head) == self._wanted and (pdu := self._known(time_ns)) is not None:
                yield pdu

    def _known(self, time_ns: int) -> Pdu | None:
        """The unit, if its head is complete; the rest of the unit is skipped."""
        head = bytes(self._head)
        if self._length is None:
            self._length = self._framing.length_of(head)
            if self._length is None or self._length < len(head):
                self.is_lost = True
                return None
            self._wanted = max(min(self._length, self._framing.head_bytes), len(head))
        if len(head) < self._wanted:
            return None
        pdu = Pdu(head=head, begun_ns=self._begun_ns, known_ns=time_ns)
        left = self._length - len(head)
        self._begin()
        self._to_skip = left
        return pdu
