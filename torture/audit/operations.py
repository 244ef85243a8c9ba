"""The load's durable operations, as the marks in the NAS's log announce and acknowledge them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torture.evidence.ledger import Begin, Done, parse_ledger
from torture.recording.events import Event


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledged:
    """An operation that was acknowledged."""

    number: int
    begun: int
    """The mark that announced it, by number."""
    owes_its_data: bool
    """Whether the acknowledgement is of what it wrote."""
    owes_nothing: bool
    """Whether it names no block where names are volatile: which of it was data is unknown."""


@dataclass(kw_only=True)
class Operations:
    """Follows the marks.

    `names_are_volatile`: an acknowledgement is of the blocks that it names, and of nothing else.
    """

    names_are_volatile: bool
    has_ledger: bool = False
    acknowledged_at: list[int] = field(default_factory=list)
    """The marks with which an operation was acknowledged, by number."""
    _begun: dict[int, tuple[int, Begin]] = field(default_factory=dict)

    @property
    def under_way(self) -> int:
        """How many are begun and not acknowledged."""
        return len(self._begun)

    def hear(self, mark: Event, payload: bytes) -> Iterator[Acknowledged]:
        """One mark: what it acknowledges, before what it announces."""
        self.has_ledger = True
        for heard in parse_ledger(payload).events:
            if isinstance(heard, Begin) and heard.kind.is_durable:
                self._begun[heard.seq] = (mark.seq, heard)
            elif isinstance(heard, Done) and heard.seq in self._begun:
                number, begin = self._begun.pop(heard.seq)
                self.acknowledged_at.append(mark.seq)
                yield Acknowledged(
                    number=heard.seq,
                    begun=number,
                    owes_its_data=begin.promises_what_it_writes,
                    owes_nothing=self.names_are_volatile and not begin.blocks,
                )
