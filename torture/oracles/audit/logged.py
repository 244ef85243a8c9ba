"""Finds the intent log's blocks that hold an operation's data.

The load's blocks name their operation, and the intent log does not compress them. So the audit can
check the very blocks that hold an acknowledged operation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from torture.facts.evidence.requests import load_sectors_in
from torture.facts.recording.events import Event
from torture.oracles.audit.pointed import PointedData

Sector = tuple[int, int]
"""A block of an operation, and a sector in it."""


@dataclass(kw_only=True)
class Logged:
    """Follows a recording. A sector that a log block's end cuts off is not found, and not judged."""

    _blocks: dict[int, dict[Sector, set[int]]] = field(default_factory=dict)
    """By operation and sector, the submissions of the log blocks that hold it."""
    _versions: dict[tuple[object, int], set[int]] = field(default_factory=dict)
    """By version of pointed data, the submissions of the data and of the log blocks that point there."""
    _pointed: dict[int, dict[Sector, set[tuple[object, int]]]] = field(default_factory=dict)
    """By operation and sector, the versions that hold it."""

    def hear_zil(self, event: Event, payload: bytes) -> None:
        """Note a block of the intent log."""
        for _, (operation, block, sector) in load_sectors_in(payload):
            holding = self._blocks.setdefault(operation, {})
            holding.setdefault((block, sector), set()).add(event.seq)

    def blocks_of(self, operation: int) -> frozenset[int]:
        """The submissions of the blocks that hold this operation's data."""
        return frozenset().union(*self._blocks.get(operation, {}).values())

    def hear_pointed(self, event: Event, data: PointedData, payloads: Iterable[bytes]) -> None:
        """Note a block of the intent log that points to these data."""
        version = self._versions.setdefault(data.version, set())
        version |= {event.seq, *(data.submissions or ())}
        for payload in payloads:
            for _, (operation, block, sector) in load_sectors_in(payload):
                holding = self._pointed.setdefault(operation, {})
                holding.setdefault((block, sector), set()).add(data.version)

    def not_on_disk(
        self, operation: int, *, uncovered: Collection[int], now: int
    ) -> tuple[int, ...]:
        """The missing writes for the operation's pointed sectors that are in no version on the disks.

        `now` is the last event; later submissions are not on the disks. A volume's block also holds the
        data of older operations. An older version of the block has them on the disks, too, or a log
        block that holds them itself. Then it does not matter what happens to a later version.
        """
        missing: set[int] = set()
        in_log = self._blocks.get(operation, {})
        for sector, versions in self._pointed.get(operation, {}).items():
            holders = [self._versions[version] for version in versions]
            holders += [{number} for number in in_log.get(sector, ())]
            left = [
                {number for number in holder if number in uncovered or number > now}
                for holder in holders
            ]
            if all(left):
                missing |= min(left, key=len)
        return tuple(sorted(missing))
