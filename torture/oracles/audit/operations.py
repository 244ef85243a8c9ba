"""The load's durable operations, as the marks in the NAS's log announce and acknowledge them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from torture.facts.evidence.ledger import Begin, Done, Hello, OperationKind, parse_ledger
from torture.facts.recording.events import Event

Sector = tuple[int, int, int]
"""A file, a block of it, and a sector in that."""

_WRITING = frozenset(OperationKind) - {
    OperationKind.UNLINK,
    OperationKind.SCRIBBLE,
    OperationKind.TRANSACTION,
    OperationKind.LAZY_TRANSACTION,
}
"""What has written the blocks that it names, in the load's own format, when it is acknowledged."""


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
    sectors: frozenset[Sector]
    """What it wrote in the load's own format."""
    is_on_device: bool
    """Whether that lies on a bare device, of which each file is a region."""


@dataclass(kw_only=True)
class Operations:
    """Follows the marks.

    `names_are_volatile`: an acknowledgement is of the blocks that it names, and of nothing else.
    """

    names_are_volatile: bool
    has_ledger: bool = False
    _is_on_device: bool = False
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
            if isinstance(heard, Hello):
                self._is_on_device = heard.mode == "raw"
            elif isinstance(heard, Begin) and heard.kind.is_durable:
                self._begun[heard.seq] = (mark.seq, heard)
            elif isinstance(heard, Done) and heard.seq in self._begun:
                number, begin = self._begun.pop(heard.seq)
                self.acknowledged_at.append(mark.seq)
                yield Acknowledged(
                    number=heard.seq,
                    begun=number,
                    owes_its_data=begin.promises_what_it_writes,
                    owes_nothing=self.names_are_volatile and not begin.blocks,
                    sectors=frozenset(_sectors_of(begin)),
                    is_on_device=self._is_on_device,
                )


def _sectors_of(begin: Begin) -> Iterator[Sector]:
    if begin.kind in _WRITING and not begin.what:
        yield from product((begin.file,), begin.blocks, begin.sectors)
