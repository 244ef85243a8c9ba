"""The load's durable operations, as the marks in the recording announce and acknowledge them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from torture.facts.evidence.ledger import Begin, Done, Hello, OperationKind, parse_ledger
from torture.facts.recording.events import Event

Sector = tuple[int, int, int]
"""A file, one of its blocks, and a sector in that block."""

_WRITING = frozenset(OperationKind) - {
    OperationKind.UNLINK,
    OperationKind.SCRIBBLE,
    OperationKind.TRANSACTION,
    OperationKind.LAZY_TRANSACTION,
}
"""Operations of these kinds have written their blocks, in the load's own format, when acknowledged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledged:
    """An operation that was acknowledged."""

    number: int
    acknowledged: int
    """The number of the mark that ended it."""
    begun: int
    """The number of the mark that announced it, or that of the last operation that it settles. From
    there on its data can be in the log."""
    guarantees_data: bool
    """Whether the acknowledgement guarantees the data that it wrote."""
    guarantees_nothing: bool
    """Whether names are volatile and it names no block: then its data are unknown, and nothing is due."""
    sectors: frozenset[Sector]
    """The sectors that it wrote in the load's own format."""
    is_on_device: bool
    """Whether they lie on a bare device, where each file is a region."""


@dataclass(kw_only=True)
class Operations:
    """Follows the marks of a recording.

    `names_are_volatile`: an acknowledgement covers only the blocks that it names.
    """

    names_are_volatile: bool
    has_ledger: bool = False
    _is_on_device: bool = False
    acknowledged: list[Acknowledged] = field(default_factory=list)
    _begun: dict[int, tuple[int, Begin]] = field(default_factory=dict)
    _unsettled: dict[int, int] = field(default_factory=dict)
    """By writer, the number of the mark of its last operation without a promise."""

    @property
    def under_way(self) -> int:
        """How many operations are begun and not acknowledged."""
        return len(self._begun)

    def hear(self, mark: Event, payload: bytes) -> Iterator[Acknowledged]:
        """Note one mark; yields the operations that it acknowledges."""
        self.has_ledger = True
        for event in parse_ledger(payload).events:
            if isinstance(event, Hello):
                self._is_on_device = event.mode == "raw"
            elif isinstance(event, Begin) and not event.kind.is_durable:
                self._unsettled[event.writer] = mark.seq
            elif isinstance(event, Begin):
                self._begun[event.seq] = (self._bound_of(event, mark.seq), event)
            elif isinstance(event, Done) and event.seq in self._begun:
                number, begin = self._begun.pop(event.seq)
                one = Acknowledged(
                    number=event.seq,
                    acknowledged=mark.seq,
                    begun=number,
                    guarantees_data=begin.promises_its_content,
                    guarantees_nothing=self.names_are_volatile and not begin.blocks,
                    sectors=frozenset(_sectors_of(begin)),
                    is_on_device=self._is_on_device,
                )
                self.acknowledged.append(one)
                yield one

    def _bound_of(self, begin: Begin, announced: int) -> int:
        """The `begun` of an operation.

        One that only settles earlier ones may find nothing left to write: another writer's flush has
        committed them in between.
        """
        settles = begin.what.get("settle") is True
        return self._unsettled.get(begin.writer, announced) if settles else announced


def _sectors_of(begin: Begin) -> Iterator[Sector]:
    if begin.kind in _WRITING and not begin.what:
        yield from product((begin.file,), begin.blocks, begin.sectors)
