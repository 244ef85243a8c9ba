"""The place in ZFS's write path that each write of a recording belongs to (pure).

A write's content shows its role. Two kinds of blocks have no mark of their own, and addresses in the
intent log show them:

- A block of the log in a raidz is split over disks. Only one column has the block's head. The block
  before it in the chain has the address of the whole (OpenZFS `include/sys/zil.h`, `zc_next_blk`).
- Without a log device a large synchronous write goes straight to its place in the pool, and the log
  points there (`module/zfs/zfs_log.c`, `zfs_log_write`, `WR_INDIRECT`). The client waits for it.

Pointers in other columns than the first are not seen: their blocks then count as data.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from torture.facts.recording.events import Event, Kind, Recording
from torture.facts.recording.intent_log import Extent, log_blocks_in, next_extents_in
from torture.facts.recording.roles import Role, role_of

_FIRST_BLOCK_BYTES = (1 << 20) + (4 << 20)
"""The disk's offset of address 0: behind the partition's start, two labels and the boot block
(`include/sys/vdev_impl.h`, `VDEV_LABEL_START_SIZE`)."""
_VDEV = 0
"""The data disks are the pool's first top-level vdev, whose addresses are meant here."""
_SECTOR_BYTES = 512


class PathPlace(StrEnum):
    """A stop of the write path."""

    ZIL_POOL = "zil-pool"
    """Blocks of the intent log on data disks."""
    ZIL_SLOG = "zil-slog"
    """Blocks of the intent log on log devices."""
    POINTED = "pointed"
    """Data that a log block points to: a synchronous write waits for it, and no group writes it again."""
    DATA = "data"
    """Data of transaction groups, in blocks of a multiple of 16 KiB."""
    METADATA = "metadata"
    """Metadata of transaction groups, and data of other lengths, such as parts of a raidz."""
    UBERBLOCK = "uberblock"
    """Uberblocks and labels, which end a transaction group."""


WAITED_FOR = (PathPlace.ZIL_POOL, PathPlace.ZIL_SLOG, PathPlace.POINTED)
"""The places that a synchronous write waits for."""
_OF_ROLES = {
    Role.DATA: PathPlace.DATA,
    Role.METADATA: PathPlace.METADATA,
    Role.UBERBLOCK: PathPlace.UBERBLOCK,
    Role.LABEL: PathPlace.UBERBLOCK,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolShape:
    """The pool's disks, as far as addresses and places need them."""

    logs: Collection[str] = ()
    """The names of the log devices."""
    columns: int = 1
    """Over how many disks a block is split: 1 on a single disk or a mirror; 0: addresses are not read."""


def places_of_writes(recording: Recording, shape: PoolShape) -> dict[int, PathPlace]:
    """The place of each `write-submit`, by number. It reads one payload at a time.

    Raises what `Recording.payload` raises.
    """
    logs = {place for place, disk in enumerate(recording.disks) if disk.name in shape.logs}
    found: dict[int, PathPlace] = {}
    unsure: list[Event] = []
    chained, pointed = _Addresses(), _Addresses()
    for event in recording.events:
        if event.kind is not Kind.WRITE_SUBMIT:
            continue
        payload = recording.payload(event)
        role = role_of(payload)
        blocks = [] if role in (Role.UBERBLOCK, Role.LABEL) else list(log_blocks_in(payload))
        if role is Role.ZIL or blocks:
            found[event.seq] = PathPlace.ZIL_SLOG if event.disk in logs else PathPlace.ZIL_POOL
            chained.add(next_extents_in(payload), event.seq, shape.columns)
            for write in (write for block in blocks for write in block.pointed):
                pointed.add(write.extents, event.seq, shape.columns)
            continue
        found[event.seq] = _OF_ROLES[role]
        if found[event.seq] is not PathPlace.UBERBLOCK and event.disk not in logs:
            unsure.append(event)
    for event in unsure:
        if shape.columns > 1 and chained.has(event, is_noted_before=True):
            found[event.seq] = PathPlace.ZIL_POOL
        elif pointed.has(event, is_noted_before=False):
            found[event.seq] = PathPlace.POINTED
    return found


@dataclass(kw_only=True)
class _Addresses:
    """Ranges of bytes on each data disk, and the event that noted them."""

    _ranges: set[tuple[int, int, int]] = field(default_factory=set)
    """Start, end, event."""
    _sorted: list[tuple[int, int, int]] = field(default_factory=list)
    _longest: int = 0

    def add(self, extents: Iterable[Extent], noted: int, columns: int) -> None:
        for extent in extents:
            if columns and extent.vdev == _VDEV:
                start = extent.offset_bytes // columns // _SECTOR_BYTES * _SECTOR_BYTES
                end = -(-(extent.offset_bytes + extent.length_bytes) // columns)
                self._ranges.add((_FIRST_BLOCK_BYTES + start, _FIRST_BLOCK_BYTES + end, noted))
                self._longest = max(self._longest, end - start)

    def has(self, event: Event, *, is_noted_before: bool) -> bool:
        """Whether half of the write, or half of a range, is in both.

        A merged write has several blocks, and a raidz puts a column up to one sector further.
        """
        if len(self._sorted) < len(self._ranges):
            self._sorted = sorted(self._ranges)
        low = bisect_left(self._sorted, (event.offset - self._longest, 0, 0))
        high = bisect_right(self._sorted, (event.offset + event.length, 0, 0))
        return any(
            (noted < event.seq) is is_noted_before and _is_half_in(event, start, end)
            for start, end, noted in self._sorted[low:high]
        )


def _is_half_in(event: Event, start: int, end: int) -> bool:
    common = min(event.offset + event.length, end) - max(event.offset, start)
    return common > 0 and common * 2 >= min(event.length, end - start)
