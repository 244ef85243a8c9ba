"""That nothing is overwritten which the last transaction groups wrote: an older one must stay readable.

What a transaction group frees may be written again only after two more (OpenZFS
`module/zfs/metaslab.c`, `TXG_DEFER_SIZE`), by their numbers: an empty group writes nothing, not even an
uberblock, and counts (`module/zfs/vdev_label.c`, `vdev_config_sync`). Within its own group a block may be
written several times (`zfs_sync_pass_rewrite`, zfs(4)), and the intent log's blocks are freed at once.

The two groups begin when a block is freed (`metaslab_sync_done`), and a recording shows that of one block
only. An uberblock names its root block, which the next group that writes another one frees
(`module/zfs/dmu_objset.c`, `dmu_objset_write_done`). All other frees stand in compressed metadata, and
content does not tell them: a client's filesystem may have freed, moved or copied what it wrote. Hence any
other block counts as freed by the group that wrote it, the earliest that could.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from torture.facts.recording.events import Event

_SECTOR_BYTES = 512
_KEPT_FOR_GROUPS = 2
_IN_USE = -1
"""Stands for the group of what no group has freed."""

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
    """Of a former root block the group that freed it."""
    _written_now: set[Place] = field(default_factory=set)
    """By the group under way."""
    _root: frozenset[Place] = frozenset()
    """Where the root block lies, as far as a recording shows that it was written there."""
    _overwritten_now: list[tuple[Event, frozenset[int]]] = field(default_factory=list)
    """What the group under way wrote over what of former groups, by their numbers."""
    _trimmed_now: list[tuple[Event, frozenset[int]]] = field(default_factory=list)
    """The same of trims and zeroes."""

    def hear_write(self, event: Event) -> None:
        """A write of the transaction group under way."""
        if groups := self._groups_at(event):
            self._overwritten_now.append((event, groups))
        for sector in sectors_of(event.offset, event.length):
            self._written_in.pop((event.disk, sector), None)
            self._written_now.add((event.disk, sector))

    def hear_trim(self, event: Event) -> None:
        """A trim, or zeroes: these fall on free space alone, so not on what was written just now."""
        groups = self._groups_at(event)
        if any(_places_at(event, self._written_now)):
            groups |= {_IN_USE}
        if groups:
            self._trimmed_now.append((event, groups))

    def hear_pointed(self, event: Event, txg: int) -> bool:
        """Data of this group that the intent log points to; whether they took what had to be kept."""
        groups = self._groups_at(event)
        self.hear_log(event)
        for sector in sectors_of(event.offset, event.length):
            self._written_in[event.disk, sector] = txg
        return not self.is_blind and _must_keep(groups, txg)

    def hear_log(self, event: Event) -> None:
        """A block of the intent log."""
        for sector in sectors_of(event.offset, event.length):
            self._written_in.pop((event.disk, sector), None)
            self._written_now.discard((event.disk, sector))

    def hear_uberblock(self, txg: int, root: Collection[Place] | None = None) -> tuple[Event, ...]:
        """The end of the group under way, which has this number; what of it took what had to be kept.

        `root`: where its root block lies; None where it is still that of an older group.
        """
        taken = [event for event, groups in self._overwritten_now if _must_keep(groups, txg)]
        taken += [event for event, groups in self._trimmed_now if _is_not_free(groups, txg)]
        self._written_in.update(dict.fromkeys(self._written_now, txg))
        if root is not None:
            freed = (place for place in self._root if self._written_in.get(place) == _IN_USE)
            self._written_in.update(dict.fromkeys(freed, txg))
            self._root = frozenset(self._written_now.intersection(root))
            self._written_in.update(dict.fromkeys(self._root, _IN_USE))
        self._written_now.clear()
        self._overwritten_now.clear()
        self._trimmed_now.clear()
        return () if self.is_blind else tuple(sorted(taken, key=lambda event: event.seq))

    def _groups_at(self, event: Event) -> frozenset[int]:
        """The groups that wrote what is there."""
        return frozenset(self._written_in[place] for place in _places_at(event, self._written_in))


def _places_at(event: Event, known: Collection[Place]) -> Iterator[Place]:
    """Those that an event is about. A trim may be of more sectors than were ever written."""
    sectors = sectors_of(event.offset, event.length)
    if len(sectors) < len(known):
        places = ((event.disk, sector) for sector in sectors)
        return (place for place in places if place in known)
    return (place for place in known if place[0] == event.disk and place[1] in sectors)


def _must_keep(groups: frozenset[int], txg: int) -> bool:
    """Whether one of these groups has to be kept from this one."""
    return any(group == _IN_USE or 0 < txg - group <= _KEPT_FOR_GROUPS for group in groups)


def _is_not_free(groups: frozenset[int], txg: int) -> bool:
    """Whether what one of these groups wrote cannot be free as this one ends; it may be a later one."""
    return any(txg - group <= _KEPT_FOR_GROUPS or group == _IN_USE for group in groups)


def sectors_of(offset_bytes: int, length_bytes: int) -> range:
    """The numbers of the sectors that are touched there, of 512 bytes whatever the disk's own are."""
    end_bytes = offset_bytes + length_bytes
    return range(offset_bytes // _SECTOR_BYTES, -(-end_bytes // _SECTOR_BYTES))
