"""Which blocks of the intent log hold what an operation wrote.

Our load's blocks say themselves whose they are, and the intent log does not compress them: so it can be
told of an acknowledged operation whether the very blocks that hold it were covered, and not only some.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from torture.facts.evidence.file_requests import load_sectors_in
from torture.facts.recording.events import Event
from torture.oracles.audit.pointed import PointedData

Sector = tuple[int, int]
"""Of an operation, a block and a sector in it."""


@dataclass(kw_only=True)
class Logged:
    """Follows a log. What a block's end cuts off is not found, and nothing is said of it."""

    _blocks: dict[int, list[int]] = field(default_factory=dict)
    """By operation, the submissions of the blocks of the intent log with sectors of it."""
    _versions: dict[tuple[object, int], set[int]] = field(default_factory=dict)
    """Of blocks of data that are pointed to, the submissions of these and of the log's that do so."""
    _pointed: dict[int, dict[Sector, set[tuple[object, int]]]] = field(default_factory=dict)
    """By operation and sector, which of these hold it."""

    def hear_zil(self, event: Event, payload: bytes) -> None:
        """A block of the intent log."""
        for operation in operations_in(payload):
            self._blocks.setdefault(operation, []).append(event.seq)

    def blocks_of(self, operation: int) -> tuple[int, ...]:
        """The submissions of the blocks that hold what this operation wrote."""
        return tuple(self._blocks.get(operation, ()))

    def hear_pointed(self, event: Event, data: PointedData, payloads: Iterable[bytes]) -> None:
        """A block of the intent log that points to these data."""
        version = self._versions.setdefault(data.version, set())
        version |= {event.seq, *(data.submissions or ())}
        for payload in payloads:
            for _, (operation, block, sector) in load_sectors_in(payload):
                holding = self._pointed.setdefault(operation, {})
                holding.setdefault((block, sector), set()).add(data.version)

    def not_on_disk(
        self, operation: int, *, uncovered: Collection[int], now: int
    ) -> tuple[int, ...]:
        """Of an operation's sectors that were logged by pointer what no version has on the disks.

        `now` is the last event: what is submitted later is not there either. A block of a volume holds
        what older operations wrote, too: they are on the disks already with an older version of it,
        whatever becomes of a later one.
        """
        missing: set[int] = set()
        for versions in self._pointed.get(operation, {}).values():
            left = [
                {
                    number
                    for number in self._versions[version]
                    if number in uncovered or number > now
                }
                for version in versions
            ]
            if all(left):
                missing |= min(left, key=len)
        return tuple(sorted(missing))


def operations_in(payload: bytes) -> frozenset[int]:
    """The operations that wrote the load's sectors in there."""
    return frozenset(operation for _, (operation, _, _) in load_sectors_in(payload))
