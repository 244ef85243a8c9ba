"""Splits a byte stream into the units of a protocol, each of which begins with its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


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
