"""The sectors of the NAS's own disks, in bytes: logical, and physical.

ZFS takes the physical one for its `ashift` (OpenZFS `module/os/linux/zfs/vdev_disk.c`, `vdev_disk_open`),
and a write is torn at it. Disks that are sold now have physical sectors of 4096 bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from torture.axes.axis import Axis, Choice
from torture.axes.setting import means_something_always, setting_axis


class DiskSector(NamedTuple):
    """In bytes."""

    logical: int
    physical: int


SECTOR_BEFORE = "sector512"
"""What all disks had until there was this axis."""

AXIS: Axis[DiskSector] = setting_axis(
    field="disk_sector",
    noun="DiskSector",
    title="NAS disks' sectors",
    place=59,
    default=Choice(
        name="sector512e",
        value=DiskSector(512, 4096),
        words="NAS disks with physical sectors of 4096 bytes, logical ones of 512",
        explained="512e",
    ),
    others=(
        Choice(
            name="sector4kn",
            value=DiskSector(4096, 4096),
            words="NAS disks with sectors of 4096 bytes",
            explained="4Kn",
        ),
        Choice(
            name=SECTOR_BEFORE,
            value=DiskSector(512, 512),
            words="NAS disks with sectors of 512 bytes",
        ),
    ),
    pointless=means_something_always,
)
