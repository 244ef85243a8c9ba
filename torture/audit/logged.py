"""Which blocks of the intent log hold what an operation wrote.

Our load's blocks say themselves whose they are, and the intent log does not compress them: so it can be
told of an acknowledged operation whether the very blocks that hold it were covered, and not only some.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from torture.evidence.ledger import BLOCK_HEADER, BLOCK_MAGIC
from torture.recording.events import Event

_HEADER = struct.Struct(BLOCK_HEADER)


@dataclass(kw_only=True)
class Logged:
    """Follows a log. What a block's end cuts off is not found, and nothing is said of it."""

    _blocks: dict[int, list[int]] = field(default_factory=dict)
    """By operation, the submissions of the blocks of the intent log with sectors of it."""

    def hear_zil(self, event: Event, payload: bytes) -> None:
        """A block of the intent log."""
        for operation in operations_in(payload):
            self._blocks.setdefault(operation, []).append(event.seq)

    def blocks_of(self, operation: int) -> tuple[int, ...]:
        """The submissions of the blocks that hold what this operation wrote."""
        return tuple(self._blocks.get(operation, ()))


def operations_in(payload: bytes) -> frozenset[int]:
    """The operations that wrote the load's sectors in there."""
    found = set()
    place = payload.find(BLOCK_MAGIC)
    while place >= 0:
        if place + _HEADER.size <= len(payload):
            _magic, _trial, _file, operation, _block, _sector = _HEADER.unpack_from(payload, place)
            found.add(int(operation))
        place = payload.find(BLOCK_MAGIC, place + _HEADER.size)
    return frozenset(found)
