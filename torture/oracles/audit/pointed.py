"""Blocks of data that the intent log points to, and which writes of a recording they are.

With `logbias=throughput`, and for large writes without a log device, ZFS logs a write by a pointer
(`WR_INDIRECT`): `dmu_sync` writes the block of the volume to where it will stay, before its transaction
group syncs, and the record has its address. Told by its content it would be taken for a write of the
group that is syncing, whose uberblock need not wait for it, and a sound NAS be accused. What must hold
of it instead (OpenZFS 2.3.9):

- `module/zfs/zil.c`, `zil_lwb_commit` and `zil_lwb_write_issue`: the block of the log waits until the
  data have an address, and not until they are written: both are on their way at once. The flush waits
  for both ("for their writing completion before the vdev cache flushing"), and `dmu_sync_done`
  (`module/zfs/dmu.c`) adds the data's vdev to those that are flushed (`zil_lwb_add_block`). So when
  the client is answered, both are covered; either may have been written first.
- A group does not sync before the data that were born in it are written: `dbuf_sync_leaf` waits for
  `dmu_sync` to be done, and one that came too late to have its block taken over holds a transaction of
  the group that is open (`dmu_sync_late_arrival`). So at the uberblock of the group in which they were
  born they are covered by its flush of all disks, whatever the log has flushed by then, and no
  earlier uberblock asks for them.
- An address is used again three groups later at the earliest (`torture.oracles.audit.extents`),
  and none is born later than two groups after the one that syncs: between the uberblocks of the
  third group before its birth and of its own a place has one write only, which is it.

What a record will point to is not known before it is written. Data that are younger than the last few
blocks of the log may be such: of these nothing is said.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from torture.facts.recording.events import Recording
from torture.facts.recording.intent_log import Extent, PointedWrite
from torture.facts.recording.roles import OF_A_TXG, Role
from torture.oracles.audit.disk_writes import DiskWrite
from torture.oracles.audit.extents import sectors_of

_FIRST_BLOCK_BYTES = (1 << 20) + (4 << 20)
"""Where a disk's allocations begin: behind its partition's first MiB, two labels and the room for booting
(`include/sys/vdev_impl.h`, `VDEV_LABEL_START_SIZE`)."""
_VDEV = 0
"""The data's: `zpool create` is told of it first."""
_GROUPS_BEFORE_REUSE = 3
_BLOCKS_BEHIND = 8
"""So many blocks of the log on a disk may be written between data and the record that points to them:
some are begun while others wait for their place in the chain."""

Place = tuple[int, int]
"""A disk and a sector of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PointedData:
    """A record by a pointer, and the writes of what it points to, a disk each or several.

    None where they are not to be told, of a block that is split over disks. None of them is missing
    when the numbers are empty: it was not written before the cut.
    """

    write: PointedWrite
    submissions: frozenset[int] | None

    @property
    def version(self) -> tuple[tuple[Extent, ...], int]:
        """The same for each copy of the record: where the block lies, and when it was born."""
        return self.write.extents, self.write.txg


@dataclass(frozen=True, kw_only=True, slots=True)
class Pointed:
    """What the log of a recording points to."""

    by_log: Mapping[int, tuple[PointedData, ...]] = field(default_factory=dict)
    """By the submission of a block of the log."""
    born_in: Mapping[int, int] = field(default_factory=dict)
    """By the submission of data that are pointed to and nothing else, their transaction group."""
    holding: frozenset[int] = frozenset()
    """All submissions with data that are pointed to, whatever else is in them."""
    undecided: frozenset[int] = frozenset()
    """Submissions that may be of a transaction group, or of data that the log was going to point to."""


def find_pointed(
    recording: Recording, disk_writes: Mapping[int, DiskWrite], *, whole_on: Collection[str]
) -> Pointed:
    """What the blocks of the log among these writes point to.

    `whole_on`: the disks on each of which a block lies whole, at one place; none where blocks are split.
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
        for sector in sectors_of(_FIRST_BLOCK_BYTES + extent.offset_bytes, extent.length_bytes)
    ]


@dataclass(kw_only=True)
class _Finder:
    disk_writes: Mapping[int, DiskWrite]
    disks: list[int]
    _uberblocks: list[tuple[int, int]] = field(init=False)
    """Transaction group and submission of the first uberblock of each, ascending."""
    _written_at: dict[Place, list[int]] = field(default_factory=dict)
    """By place, the submissions of what was written there."""
    _pointed: dict[int, tuple[int, set[Place]]] = field(default_factory=dict)
    """By submission of data: the first group of what is pointed to in it, and where that is."""

    def __post_init__(self) -> None:
        first: dict[int, int] = {}
        for number, written in self.disk_writes.items():
            if written.txg is not None:
                first.setdefault(written.txg, number)
        self._uberblocks = sorted(first.items())

    def index(self, wanted: Collection[Place]) -> None:
        """Note what is written to these places."""
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
        """From which number on, and before which one, a block that was born in this group is written."""
        groups = [group for group, _ in self._uberblocks]
        former = bisect_right(groups, txg - _GROUPS_BEFORE_REUSE) - 1
        own = bisect_left(groups, txg)
        after = self._uberblocks[former][1] if former >= 0 else 0
        return after, self._uberblocks[own][1] if own < len(groups) else math.inf

    @property
    def holding(self) -> frozenset[int]:
        """The writes in which something is pointed to."""
        return frozenset(self._pointed)

    def born_in(self) -> dict[int, int]:
        """The writes that are wholly pointed to."""
        return {
            number: txg
            for number, (txg, known) in self._pointed.items()
            if known.issuperset(_places(self.disk_writes[number]))
        }

    def undecided(self) -> frozenset[int]:
        """The writes that are so in part, and those to which the log may have come to point."""
        known = self.born_in()
        last = self._last_with_enough_behind()
        return frozenset(
            number
            for number, written in self.disk_writes.items()
            if written.role in OF_A_TXG and number not in known
            if number in self._pointed or number > last
        )

    def _last_with_enough_behind(self) -> float:
        """The number up to which data would be pointed to by now; no number where none is told."""
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
