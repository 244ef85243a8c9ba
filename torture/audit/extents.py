"""That nothing is overwritten which the last transaction groups wrote: an older one must stay readable.

What a transaction group frees may be written again only after two more (OpenZFS
`module/zfs/metaslab.c`, `TXG_DEFER_SIZE`), by their numbers: an empty group writes nothing, not even an
uberblock, and counts (`module/zfs/vdev_label.c`, `vdev_config_sync`). Within its own group a block may be
written several times (`zfs_sync_pass_rewrite`, zfs(4)), and the intent log's blocks are freed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torture.recording.events import Event

_SECTOR_BYTES = 512
_KEPT_FOR_GROUPS = 2

Place = tuple[int | None, int]
"""A disk and a sector of it."""


@dataclass(kw_only=True)
class Extents:
    """Follows a log: in which transaction group each sector of each disk was written last.

    Which group a write belongs to is told by the uberblock that ends it; of a group without one nothing
    is said. Nor is anything where a block of the log is split over disks: parts of it look like data.
    """

    is_blind: bool = False
    _written_in: dict[Place, int] = field(default_factory=dict)
    _written_now: set[Place] = field(default_factory=set)
    """By the group under way."""
    _overwritten_now: list[tuple[Event, frozenset[int]]] = field(default_factory=list)
    """What of the group under way was written or trimmed over what of former groups, by their numbers."""

    def hear_write(self, event: Event) -> None:
        """A write of the transaction group under way."""
        self.hear_trim(event)
        for sector in sectors_of(event.offset, event.length):
            self._written_in.pop((event.disk, sector), None)
            self._written_now.add((event.disk, sector))

    def hear_trim(self, event: Event) -> None:
        """A trim, or zeroes."""
        if groups := frozenset(self._groups_at(event)):
            self._overwritten_now.append((event, groups))

    def hear_pointed(self, event: Event, txg: int) -> bool:
        """Data of this group that the intent log points to; whether they took what had to be kept."""
        groups = frozenset(self._groups_at(event))
        self.hear_log(event)
        for sector in sectors_of(event.offset, event.length):
            self._written_in[event.disk, sector] = txg
        return not self.is_blind and _must_keep(groups, txg)

    def hear_log(self, event: Event) -> None:
        """A block of the intent log."""
        for sector in sectors_of(event.offset, event.length):
            self._written_in.pop((event.disk, sector), None)
            self._written_now.discard((event.disk, sector))

    def hear_uberblock(self, txg: int) -> tuple[Event, ...]:
        """The end of the group under way, which has this number; what of it took what had to be kept."""
        taken = tuple(event for event, groups in self._overwritten_now if _must_keep(groups, txg))
        self._written_in.update(dict.fromkeys(self._written_now, txg))
        self._written_now.clear()
        self._overwritten_now.clear()
        return () if self.is_blind else taken

    def _groups_at(self, event: Event) -> Iterator[int]:
        """The groups that wrote what is there. A trim may be of more sectors than were ever written."""
        sectors = sectors_of(event.offset, event.length)
        if len(sectors) < len(self._written_in):
            places = ((event.disk, sector) for sector in sectors)
            yield from (self._written_in[place] for place in places if place in self._written_in)
            return
        for (disk, sector), group in self._written_in.items():
            if disk == event.disk and sector in sectors:
                yield group


def _must_keep(groups: frozenset[int], txg: int) -> bool:
    """Whether one of these groups has to be kept from this one."""
    return any(0 < txg - group <= _KEPT_FOR_GROUPS for group in groups)


def sectors_of(offset_bytes: int, length_bytes: int) -> range:
    """The numbers of the sectors that are touched there, of 512 bytes whatever the disk's own are."""
    end_bytes = offset_bytes + length_bytes
    return range(offset_bytes // _SECTOR_BYTES, -(-end_bytes // _SECTOR_BYTES))
