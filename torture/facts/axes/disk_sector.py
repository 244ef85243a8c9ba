"""The logical and physical sectors of the NAS's own disks, in bytes.

ZFS uses the physical size for its `ashift` (OpenZFS `module/os/linux/zfs/vdev_disk.c`, `vdev_disk_open`),
and a write is torn at it. Current disks have physical sectors of 4096 bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.setting import setting_axis


class DiskSector(NamedTuple):
    """A disk's sector sizes in bytes."""

    logical: int
    physical: int


SECTOR_BEFORE = "sector512"
"""The choice of all runs from before this axis."""

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
)
