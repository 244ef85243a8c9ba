"""The bytes of a TCP connection in their order; segments may come twice, late or never."""

from __future__ import annotations

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
