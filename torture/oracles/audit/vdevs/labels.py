"""Checks the order of labels and uberblocks, which keeps a pool importable after any cut.

A disk has four labels. ZFS writes the first and third before a transaction group's uberblock and the
others after it. It flushes after each step (OpenZFS `module/zfs/vdev_label.c`, `vdev_config_sync`). So
at any moment two labels are whole and agree with an uberblock on the disk.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from torture.facts.recording.events import Event, RecordedDisk
from torture.facts.recording.intent_log import LogBlock
from torture.oracles.audit.commits import Coverage
from torture.oracles.audit.disk_writes import overlap

_LABEL_AREA_BYTES = 256 * 1024
"""The size of a label with its ring of uberblocks.

Labels lie at multiples of it, since a ZFS partition begins at 1 MiB (`include/sys/vdev_impl.h`,
`vdev_label_t`).
"""
_LABELS = 4
_PAD_BYTES = 8 * 1024
_FRONT_BYTES, _END_BYTES = 5 << 20, 16 << 20
"""Labels lie in these areas: a partition's first MiB and its end.

The boot area follows the first MiB. Behind the partition `zpool create` makes another one of 8 MiB.
"""
_ENTRIES_BYTES = 16 * 1024
"""The entries of a partition table (UEFI Specification, 5.3): a header of one logical sector, 128
entries.
"""


def is_probe(event: Event, disk: RecordedDisk) -> bool:
    """Whether a write is a probe of the disk, into a label's second pad.

    ZFS never reads a probe back, so no flush has to cover it (`module/zfs/vdev.c`, `vdev_probe`).
    """
    is_pad = event.length == _PAD_BYTES and event.offset % _LABEL_AREA_BYTES == _PAD_BYTES
    return is_pad and _is_where_labels_are(event.offset, disk)


def _is_where_labels_are(offset: int, disk: RecordedDisk) -> bool:
    return not _FRONT_BYTES <= offset < disk.size - _END_BYTES


def is_partition_table(event: Event, disk: RecordedDisk) -> bool:
    """Whether a write is a part of the GUID partition table of a whole disk: not one of ZFS's.

    zpool(8) writes the table to an added disk at any time, past the page cache
    (`lib/libefi/rdwr_efi.c`, `efi_write`). It consists of header and entries, their copy at the end,
    and a protective MBR.
    """
    copy = disk.size - disk.sector
    return (event.offset, event.length) in (
        (0, disk.sector),
        (disk.sector, disk.sector + _ENTRIES_BYTES),
        (copy - _ENTRIES_BYTES, _ENTRIES_BYTES),
        (copy, disk.sector),
    )


@dataclass(kw_only=True)
class Labels:
    """Each disk's labels as known so far; `labels` and `uberblocks` are the coverage over all disks."""

    labels: Coverage
    uberblocks: Coverage
    _areas: dict[int | None, set[int]] = field(default_factory=dict)
    """By disk, the numbers of the label areas. A label's rank is known once all four had an uberblock."""

    def hear_uberblock(self, event: Event) -> tuple[int, ...]:
        """Note an uberblock; returns the uncovered labels that had to be covered before it."""
        self._areas.setdefault(event.disk, set()).add(event.offset // _LABEL_AREA_BYTES)
        return self.labels.uncovered

    def hear_label(self, event: Event) -> tuple[int, ...]:
        """Note a label; returns the uncovered uberblocks that had to be covered before it."""
        areas = sorted(self._areas.get(event.disk, ()))
        area = event.offset // _LABEL_AREA_BYTES
        if len(areas) != _LABELS or area not in areas:
            return ()
        return self.uberblocks.uncovered if areas.index(area) % 2 else ()

    def forget(self, disk: int) -> None:
        """Drop the labels of a disk that has left the pool."""
        self._areas.pop(disk, None)

    def is_touched_by(self, trim: Event, disk: RecordedDisk) -> bool:
        """Whether a trim, or zeroes, overlap a label that had an uberblock of a group."""
        last = (trim.offset + trim.length - 1) // _LABEL_AREA_BYTES
        return any(
            trim.offset // _LABEL_AREA_BYTES <= area <= last
            for area in self._areas.get(trim.disk, ())
            if _is_where_labels_are(area * _LABEL_AREA_BYTES, disk)
        )


# Checks that trims and zeroes spare labels, uberblocks, and the log blocks that replay needs.
#
# ZFS trims only the free space of a metaslab (OpenZFS `module/zfs/vdev_trim.c`,
# `vdev_trim_thread` and `vdev_autotrim_thread`). No metaslab contains a label. A log block
# becomes free once a group has committed its records, at the earliest: `zil_sync` frees it
# (`module/zfs/zil.c`). This does not depend on any flush, so an uberblock counts as soon as it
# is submitted. `torture.oracles.audit.extents` checks trims over data.
@dataclass(kw_only=True)
class Trims:
    """Follows a recording; `labels` has the places of a disk's labels."""

    labels: Labels
    _txg: int = 0
    """The highest transaction group with an uberblock."""
    _needed: list[tuple[Event, int]] = field(default_factory=list)
    """Writes of log blocks, each with the group that has to end before one may be freed."""

    def hear_log(self, event: Event, blocks: Collection[LogBlock]) -> None:
        """Note a write with these log blocks; blocks that are split over disks are not judged."""
        if all(block.is_whole for block in blocks):
            txg = min((block.txg for block in blocks), default=0)
            if txg > self._txg:
                self._needed.append((event, txg))

    def hear_uberblock(self, txg: int) -> None:
        """Note the uberblock that ends this group."""
        self._txg = max(self._txg, txg)
        self._needed = [(event, until) for event, until in self._needed if until > self._txg]

    def forget(self, disk: int) -> None:
        """Drop the log blocks on a disk that has left the pool, and its labels."""
        self.labels.forget(disk)
        self._needed = [(event, until) for event, until in self._needed if event.disk != disk]

    def hits_used_space(self, trim: Event, disk: RecordedDisk) -> bool:
        """Whether a trim, or zeroes, overlap a label, an uberblock or a needed log block."""
        if self.labels.is_touched_by(trim, disk):
            return True
        return any(trim.disk == event.disk and overlap(trim, event) for event, _ in self._needed)
