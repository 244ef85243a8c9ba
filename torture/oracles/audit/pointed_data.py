"""Finds the data blocks that the intent log points to, among the writes of a recording.

With `logbias=throughput`, and for large writes without a log device, ZFS logs a write by a pointer
(`WR_INDIRECT`). `dmu_sync` writes the volume's block to its final place before its transaction group
syncs. The record has the block's address. The content looks like a write of the group that is syncing,
but that group's uberblock need not wait for it. A sound NAS would be accused. These rules hold instead
(OpenZFS 2.3.9):

- `module/zfs/zil.c`, `zil_lwb_commit` and `zil_lwb_write_issue`: the log block waits until the data
  have an address, not until they are written. Both are in flight at once. The flush waits for both
  ("for their writing completion before the vdev cache flushing"). `dmu_sync_done` (`module/zfs/dmu.c`)
  adds the data's vdev to the flushed ones (`zil_lwb_add_block`). So both are covered when the client
  gets its answer; either may have been written first.
- A group syncs only after the data born in it are written: `dbuf_sync_leaf` waits for `dmu_sync`. A
  `dmu_sync` that came too late holds a transaction of the open group (`dmu_sync_late_arrival`). So the
  group's own flush of all disks covers the data before its uberblock, whatever the log has flushed by
  then. No earlier uberblock needs them.
- An address is reused three groups later at the earliest (`torture.oracles.audit.extents`). None is
  born more than two groups after the one that syncs. So a place has one write only between the
  uberblocks of the third group before its birth and of its own. That write is the block.

The target of a record is unknown before the record is written. The log may still point to data that are
younger than the last few log blocks. Such data are not judged.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from torture.facts.recording.events import Recording
from torture.facts.recording.intent_log import TXG_ROLES, Extent, PointedWrite, Role
from torture.oracles.audit.disk_writes import FIRST_BLOCK_BYTES, DiskWrite
from torture.oracles.audit.extents import sectors_of

_VDEV = 0
"""The data vdev: it comes first in `zpool create`."""
_GROUPS_BEFORE_REUSE = 3
_BLOCKS_BEHIND = 8
"""At most this many log blocks of a disk come between data and the record that points to them.

ZFS begins some of these blocks while others wait for their place in the chain.
"""

Place = tuple[int, int]
"""A disk and one of its sectors."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PointedData:
    """A pointing record, and the writes of its data, on one disk or several.

    `submissions` is None where the block is split over disks, so that its writes are unknown. It is
    empty where the block was not written before the cut.
    """

    write: PointedWrite
    submissions: frozenset[int] | None

    @property
    def version(self) -> tuple[tuple[Extent, ...], int]:
        """Identifies the data by place and group of birth, equal in each copy of the record."""
        return self.write.extents, self.write.txg


@dataclass(frozen=True, kw_only=True, slots=True)
class Pointed:
    """The data that the intent log of a recording points to."""

    by_log: Mapping[int, tuple[PointedData, ...]] = field(default_factory=dict)
    """The pointed data, by the submission of the log block."""
    born_in: Mapping[int, int] = field(default_factory=dict)
    """The transaction group of writes that hold only pointed data, by submission."""
    holding: frozenset[int] = frozenset()
    """All submissions with pointed data, whatever else they hold."""
    undecided: frozenset[int] = frozenset()
    """Submissions of a transaction group, or of data to which the log was about to point."""


def find_pointed(
    recording: Recording, disk_writes: Mapping[int, DiskWrite], *, whole_on: Collection[str]
) -> Pointed:
    """Find the data that the log blocks among these writes point to.

    `whole_on`: the disks that each hold whole blocks at one place; empty where blocks are split.
    """
    asked = [
        (number, write)
        for number, written in disk_writes.items()
        for block in written.log_blocks
        for write in block.pointed
    ]
    mixed = frozenset(number for number, written in disk_writes.items() if written.is_mixed)
    if not asked:
        return Pointed(undecided=mixed)
    disks = disks_in(recording, whole_on)
    found = _Finder(disk_writes=disk_writes, disks=disks)
    found.index({place for _, write in asked for place in places_of(write.extents, disks)})
    by_log: dict[int, list[PointedData]] = {}
    for number, write in asked:
        data = PointedData(write=write, submissions=found.submissions_of(write))
        by_log.setdefault(number, []).append(data)
    return Pointed(
        by_log={number: tuple(data) for number, data in by_log.items()},
        born_in=found.born_in(),
        holding=found.holding,
        undecided=mixed | found.undecided(),
    )


def disks_in(recording: Recording, names: Collection[str]) -> list[int]:
    """The numbers of these disks."""
    return [place for place, disk in enumerate(recording.disks) if disk.name in names]


def places_of(extents: Iterable[Extent], disks: Iterable[int]) -> list[Place]:
    """Every sector of these extents, on each disk that holds whole blocks."""
    return [
        (disk, sector)
        for disk in disks
        for extent in extents
        if extent.vdev == _VDEV
        for sector in sectors_of(FIRST_BLOCK_BYTES + extent.offset_bytes, extent.length_bytes)
    ]


@dataclass(kw_only=True)
class _Finder:
    disk_writes: Mapping[int, DiskWrite]
    disks: list[int]
    _uberblocks: list[tuple[int, int]] = field(init=False)
    """Transaction group and submission of the first uberblock of each, ascending."""
    _written_at: dict[Place, list[int]] = field(default_factory=dict)
    """By place, the submissions that wrote there."""
    _pointed: dict[int, tuple[int, set[Place]]] = field(default_factory=dict)
    """By submission: the first group of the pointed data in it, and their places."""

    def __post_init__(self) -> None:
        first: dict[int, int] = {}
        for number, written in self.disk_writes.items():
            if written.txg is not None:
                first.setdefault(written.txg, number)
        self._uberblocks = sorted(first.items())

    def index(self, wanted: Collection[Place]) -> None:
        """Note the writes to these places."""
        for number, written in self.disk_writes.items():
            for place in _places(written):
                if place in wanted:
                    self._written_at.setdefault(place, []).append(number)

    def submissions_of(self, write: PointedWrite) -> frozenset[int] | None:
        """The writes of a pointed block; empty where a part of it was not written."""
        places = places_of(write.extents, self.disks)
        if not places:
            return None
        after, before = self._window(write.txg)
        found: dict[int, set[Place]] = {}
        for place in places:
            written = self._written_at.get(place, [])
            last = bisect_left(written, before) - 1
            if last < 0 or written[last] < after:
                return frozenset()
            found.setdefault(written[last], set()).add(place)
        for number, at in found.items():
            txg, known = self._pointed.get(number, (write.txg, set()))
            self._pointed[number] = min(txg, write.txg), known | at
        return frozenset(found)

    def _window(self, txg: int) -> tuple[int, float]:
        """Where a block of this group is written: from the first of these events, before the second."""
        groups = [group for group, _ in self._uberblocks]
        former = bisect_right(groups, txg - _GROUPS_BEFORE_REUSE) - 1
        own = bisect_left(groups, txg)
        after = self._uberblocks[former][1] if former >= 0 else 0
        return after, self._uberblocks[own][1] if own < len(groups) else math.inf

    @property
    def holding(self) -> frozenset[int]:
        """The writes that hold pointed data."""
        return frozenset(self._pointed)

    def born_in(self) -> dict[int, int]:
        """The writes that hold only pointed data, with their groups."""
        return {
            number: txg
            for number, (txg, known) in self._pointed.items()
            if known.issuperset(_places(self.disk_writes[number]))
        }

    def undecided(self) -> frozenset[int]:
        """The writes that hold some pointed data, and those to which the log may still have pointed."""
        known = self.born_in()
        last = self._last_with_enough_behind()
        return frozenset(
            number
            for number, written in self.disk_writes.items()
            if written.role in TXG_ROLES and number not in known
            if number in self._pointed or number > last
        )

    def _last_with_enough_behind(self) -> float:
        """The last event whose data the log would point to by now; -inf where blocks are split."""
        if not self.disks:
            return -math.inf
        by_disk: dict[int | None, list[int]] = {}
        for number, written in self.disk_writes.items():
            if written.role is Role.ZIL:
                by_disk.setdefault(written.event.disk, []).append(number)
        behind = [
            numbers[-_BLOCKS_BEHIND]
            for numbers in by_disk.values()
            if len(numbers) >= _BLOCKS_BEHIND
        ]
        return max(behind, default=-math.inf)


def _places(written: DiskWrite) -> Iterable[Place]:
    event = written.event
    if event.disk is None:
        return []
    disk = event.disk
    return [(disk, sector) for sector in sectors_of(event.offset, event.length)]
