"""Checks that ZFS does not overwrite the blocks of the last transaction groups.

An older group must stay readable. Blocks that a group frees may be reused only after two more groups
(OpenZFS `module/zfs/metaslab.c`, `TXG_DEFER_SIZE`), by their numbers. An empty group counts, though it
writes nothing, not even an uberblock (`module/zfs/vdev_label.c`, `vdev_config_sync`). Within its own
group a block may be written several times (`zfs_sync_pass_rewrite`, zfs(4)). The intent log's blocks
are freed at once.

The two groups begin when a block is freed (`metaslab_sync_done`). A recording shows this time only for
the root block. An uberblock names its root block; the next group that writes a new root block frees the
old one (`module/zfs/dmu_objset.c`, `dmu_objset_write_done`). All other frees are recorded in compressed
metadata. The content of data does not show them either: a client's filesystem may have freed, moved or
copied its blocks. So any other block counts as freed by the group that wrote it, the earliest group
possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from torture.facts.recording.events import Event

_SECTOR_BYTES = 512
_KEPT_FOR_GROUPS = 2
_IN_USE = -1
"""Stands for the group that freed a block, while none has."""

Place = tuple[int | None, int]
"""A disk and one of its sectors."""


@dataclass(kw_only=True)
class Extents:
    """Follows a recording: the transaction group that last wrote each sector of each disk.

    The uberblock that ends a group identifies its writes; a group without one is not judged. Nor is a
    pool whose log blocks are split over disks (`is_blind`): their columns look like data.
    """

    is_blind: bool = False
    _written_in: dict[Place, int] = field(default_factory=dict)
    """For a former root block, the group that freed it."""
    _written_now: set[Place] = field(default_factory=set)
    """Written by the current group."""
    _root: frozenset[Place] = frozenset()
    """Where the root block lies, if the recording shows that it was written there."""
    _overwritten_now: list[tuple[Event, frozenset[int]]] = field(default_factory=list)
    """The current group's writes over blocks of former groups, with these groups' numbers."""
    _trimmed_now: list[tuple[Event, frozenset[int]]] = field(default_factory=list)
    """The same for trims and zeroes."""

    def hear_write(self, event: Event) -> None:
        """Note a write of the current transaction group."""
        if groups := self._groups_at(event):
            self._overwritten_now.append((event, groups))
        for sector in sectors_of(event.offset, event.length):
            self._written_in.pop((event.disk, sector), None)
            self._written_now.add((event.disk, sector))

    def forget(self, disk: int) -> None:
        """Drop the blocks on a disk that has left the pool."""
        self._written_in = {at: txg for at, txg in self._written_in.items() if at[0] != disk}
        self._written_now = {at for at in self._written_now if at[0] != disk}

    def hear_trim(self, event: Event) -> None:
        """Note a trim, or zeroes: they may hit free space only, and no block of the current group."""
        groups = self._groups_at(event)
        if any(_places_at(event, self._written_now)):
            groups |= {_IN_USE}
        if groups:
            self._trimmed_now.append((event, groups))

    def hear_pointed(self, event: Event, txg: int) -> bool:
        """Note the group's data that the log points to; returns whether they overwrote kept blocks."""
        groups = self._groups_at(event)
        self.hear_log(event)
        for sector in sectors_of(event.offset, event.length):
            self._written_in[event.disk, sector] = txg
        return not self.is_blind and _must_keep(groups, txg)

    def hear_log(self, event: Event) -> None:
        """Note a block of the intent log."""
        for sector in sectors_of(event.offset, event.length):
            self._written_in.pop((event.disk, sector), None)
            self._written_now.discard((event.disk, sector))

    def hear_uberblock(self, txg: int, root: Collection[Place] | None = None) -> tuple[Event, ...]:
        """End the current group, number `txg`; returns its writes and trims that hit kept blocks.

        `root`: the sectors of its root block; None where the root block is still an older group's.
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
        """The groups that wrote the sectors of this event."""
        return frozenset(self._written_in[place] for place in _places_at(event, self._written_in))


def _places_at(event: Event, known: Collection[Place]) -> Iterator[Place]:
    """The known places that an event covers. A trim may cover more sectors than were ever written."""
    sectors = sectors_of(event.offset, event.length)
    if len(sectors) < len(known):
        places = ((event.disk, sector) for sector in sectors)
        return (place for place in places if place in known)
    return (place for place in known if place[0] == event.disk and place[1] in sectors)


def _must_keep(groups: frozenset[int], txg: int) -> bool:
    """Whether group `txg` must not overwrite blocks of one of these groups."""
    return any(group == _IN_USE or 0 < txg - group <= _KEPT_FOR_GROUPS for group in groups)


def _is_not_free(groups: frozenset[int], txg: int) -> bool:
    """Whether blocks of one of these groups, which may be later ones, cannot be free when `txg` ends."""
    return any(txg - group <= _KEPT_FOR_GROUPS or group == _IN_USE for group in groups)


def sectors_of(offset_bytes: int, length_bytes: int) -> range:
    """The numbers of the sectors in this range, 512 bytes each, whatever the disk's own sector size."""
    end_bytes = offset_bytes + length_bytes
    return range(offset_bytes // _SECTOR_BYTES, -(-end_bytes // _SECTOR_BYTES))
