"""Whether what reached the pool went through its intent log, as sync=always promises (zfsprops(7)).

Our load's blocks say themselves whose they are, and neither the log nor the volume compresses them: so
what a transaction group writes can be looked for among what the log wrote before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torture.evidence.ledger import BLOCK_HEADER_BYTES, BLOCK_MAGIC
from torture.recording.events import Event

OPERATIONS_MIN = 3
"""A write that was being made when its transaction group began to sync may be logged a moment later.
That is one, rarely two; of a volume that logs nothing but flushes it is all since the last one."""
_OPERATION_BYTES = 32
"""Of a header: trial, file and operation; the block and sector follow."""


@dataclass(kw_only=True)
class Logged:
    """Follows a log: what of the load's data a transaction group wrote, and the intent log had not."""

    _in_log: set[bytes] = field(default_factory=set)
    """The headers of the load's sectors that a block of the log held."""
    _unlogged: dict[bytes, int] = field(default_factory=dict)
    """By operation, the first write of this transaction group with a sector that the log had not."""

    def hear_zil(self, payload: bytes) -> None:
        """A block of the intent log."""
        self._in_log |= headers_in(payload)

    def hear_data(self, event: Event, payload: bytes) -> tuple[int, ...]:
        """Data of a transaction group; the writes that the log had not, once they are enough to tell."""
        before = len(self._unlogged)
        for header in headers_in(payload) - self._in_log:
            self._unlogged.setdefault(header[:_OPERATION_BYTES], event.seq)
        if before < OPERATIONS_MIN <= len(self._unlogged):
            return tuple(sorted(set(self._unlogged.values())))
        return ()

    def hear_uberblock(self) -> None:
        """The transaction group is written."""
        self._unlogged.clear()


def headers_in(payload: bytes) -> frozenset[bytes]:
    """Whose the load's sectors in there are: trial, file, operation, block and sector of each."""
    found = set()
    place = payload.find(BLOCK_MAGIC)
    while place >= 0:
        found.add(payload[place : place + BLOCK_HEADER_BYTES])
        place = payload.find(BLOCK_MAGIC, place + BLOCK_HEADER_BYTES)
    return frozenset(found)
