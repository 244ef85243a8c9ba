"""Labels and uberblocks in the order that leaves a pool to be found, wherever a cut falls between them.

A disk has four labels. The first and third are written before a transaction group's uberblock and the
others after it, with a flush after each step (OpenZFS `module/zfs/vdev_label.c`, `vdev_config_sync`): at
any moment two labels that an uberblock on the disk agrees with are whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torture.facts.recording.events import Event, RecordedDisk
from torture.oracles.audit.coverage import Coverage

_LABEL_AREA_BYTES = 256 * 1024
"""Of a label with its ring of uberblocks, at a multiple of it: a partition of ZFS begins at 1 MiB
(`include/sys/vdev_impl.h`, `vdev_label_t`)."""
_LABELS = 4
_PAD_BYTES = 8 * 1024
_FRONT_BYTES, _END_BYTES = 5 << 20, 16 << 20
"""Where the labels are: a partition's first MiB, room for booting behind it, and its end, behind which
`zpool create` makes another one of 8 MiB."""
_ENTRIES_BYTES = 16 * 1024
"""Of a partition table (UEFI Specification, 5.3): a header of one logical sector, and 128 entries."""


def is_probe(event: Event, disk: RecordedDisk) -> bool:
    """Whether a write only tries whether the disk can be written: to a label's second pad.

    Nobody reads it, so no flush has to cover it (`module/zfs/vdev.c`, `vdev_probe`).
    """
    is_pad = event.length == _PAD_BYTES and event.offset % _LABEL_AREA_BYTES == _PAD_BYTES
    return is_pad and _is_where_labels_are(event.offset, disk)


def _is_where_labels_are(offset: int, disk: RecordedDisk) -> bool:
    return not _FRONT_BYTES <= offset < disk.size - _END_BYTES


def is_partition_table(event: Event, disk: RecordedDisk) -> bool:
    """Whether a write is a part of the GUID partition table of a whole disk: nothing of ZFS's.

    zpool(8) writes it to a disk that is added, past the page cache and whatever the pool is doing then
    (`lib/libefi/rdwr_efi.c`, `efi_write`): header and entries, the copy at the end, and a protective MBR.
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
    """What is known of each disk's labels so far; `labels` and `uberblocks` cover all disks."""

    labels: Coverage
    uberblocks: Coverage
    _areas: dict[int | None, set[int]] = field(default_factory=dict)
    """By disk. A label's place among the four is known once all four had an uberblock."""

    def hear_uberblock(self, event: Event) -> tuple[int, ...]:
        """The labels that had to be covered before this uberblock was submitted, and were not."""
        self._areas.setdefault(event.disk, set()).add(event.offset // _LABEL_AREA_BYTES)
        return self.labels.uncovered

    def hear_label(self, event: Event) -> tuple[int, ...]:
        """The uberblocks that had to be covered before this label was submitted, and were not."""
        areas = sorted(self._areas.get(event.disk, ()))
        area = event.offset // _LABEL_AREA_BYTES
        if len(areas) != _LABELS or area not in areas:
            return ()
        return self.uberblocks.uncovered if areas.index(area) % 2 else ()

    def is_touched_by(self, trim: Event, disk: RecordedDisk) -> bool:
        """Whether a trim, or zeroes, reach into a label that had an uberblock of a group."""
        last = (trim.offset + trim.length - 1) // _LABEL_AREA_BYTES
        return any(
            trim.offset // _LABEL_AREA_BYTES <= area <= last
            for area in self._areas.get(trim.disk, ())
            if _is_where_labels_are(area * _LABEL_AREA_BYTES, disk)
        )
