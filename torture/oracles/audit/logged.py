"""Finds the intent log's blocks that hold an operation's data.

The load's blocks name their operation, and the intent log does not compress them. So the audit can
check the very blocks that hold an acknowledged operation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from torture.facts.evidence.file_requests import load_sectors_in
from torture.facts.recording.events import Event
from torture.oracles.audit.pointed import PointedData

Sector = tuple[int, int]
"""A block of an operation, and a sector in it."""


@dataclass(kw_only=True)
class Logged:
    """Follows a recording. A sector that a log block's end cuts off is not found, and not judged."""

    _blocks: dict[int, list[int]] = field(default_factory=dict)
    """By operation, the submissions of the log blocks that hold its sectors."""
    _versions: dict[tuple[object, int], set[int]] = field(default_factory=dict)
    """By version of pointed data, the submissions of the data and of the log blocks that point there."""
    _pointed: dict[int, dict[Sector, set[tuple[object, int]]]] = field(default_factory=dict)
    """By operation and sector, the versions that hold it."""

    def hear_zil(self, event: Event, payload: bytes) -> None:
        """Note a block of the intent log."""
        for operation in operations_in(payload):
            self._blocks.setdefault(operation, []).append(event.seq)

    def blocks_of(self, operation: int) -> tuple[int, ...]:
        """The submissions of the blocks that hold this operation's data."""
        return tuple(self._blocks.get(operation, ()))

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
        data of older operations. These are on the disks with an older version of the block, whatever
        happens to a later one.
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
    """The operations that wrote the load's sectors in this payload."""
    return frozenset(operation for _, (operation, _, _) in load_sectors_in(payload))
