"""The sectors of the NAS's own disks, in bytes: logical, and physical.

ZFS takes the physical one for its `ashift` (OpenZFS `module/os/linux/zfs/vdev_disk.c`, `vdev_disk_open`),
and a write is torn at it. Disks that are sold now have physical sectors of 4096 bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.setting import means_something_always, setting_axis


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
        words="512e disks",
        explained="physical sectors of 4096 bytes, logical ones of 512",
    ),
    others=(
        Choice(
            name="sector4kn",
            value=DiskSector(4096, 4096),
            words="4Kn disks",
            explained="4096 and 4096",
        ),
        Choice(
            name=SECTOR_BEFORE,
            value=DiskSector(512, 512),
            words="512n disks",
            explained="512 and 512",
        ),
    ),
    pointless=means_something_always,
)
