"""Every axis, in the order of the parts of a cell's name.

Each axis is declared beside its choices. `torture/facts/axes` has the axes with few and closed
choices; each axis whose choices are files has a room of its own. No two axes share a choice's name,
so a part of a name identifies its axis, and each is a pytest mark.
"""

from __future__ import annotations

from typing import Any

from torture.choices import administration, filesystems, slogs, transports, workloads
from torture.facts.axes import fate, pool_disks, root, setting, sync, zfs_settings
from torture.facts.axes.axis import Axis, Choice

TRANSPORT = transports.AXIS
NFS_EXPORT = sync.NFS_EXPORT
SYNC = sync.AXIS
SLOG = slogs.AXIS
SLOG_CLASS = pool_disks.SLOG_CLASS
LAYOUT = pool_disks.LAYOUT
SPECIAL_VDEV = setting.SPECIAL_VDEV
ADMINISTRATION = administration.AXIS
DISKS = pool_disks.DISKS
DISK_SECTOR = setting.DISK_SECTOR
SETTINGS = zfs_settings.AXIS
LUN_SECTOR = setting.LUN_SECTOR
DISCARD = setting.DISCARD
NAS_LINK = setting.NAS_LINK
FILESYSTEM = filesystems.AXIS
ROOT = root.AXIS
WORKLOAD = workloads.AXIS
FATE = fate.AXIS

_ALL: tuple[Axis[Any], ...] = (
    TRANSPORT, NFS_EXPORT, SYNC, SLOG, SLOG_CLASS, LAYOUT, SPECIAL_VDEV, ADMINISTRATION, DISK_SECTOR,
    DISKS, SETTINGS, *setting.PARAMETERS, LUN_SECTOR, DISCARD, FILESYSTEM, ROOT, WORKLOAD, NAS_LINK,
    FATE,
)  # fmt: skip

AXES: dict[str, Axis[Any]] = {
    axis.field: axis for axis in sorted(_ALL, key=lambda axis: axis.place)
}
"""The field of a cell to its axis, in the order of the name's parts."""

DEFAULTS: dict[str, str] = {
    field: axis.default for field, axis in AXES.items() if axis.default is not None
}
"""The choices that a name omits: a name never states them."""

CHOICES: dict[str, Choice[Any]] = {
    choice.name: choice for axis in AXES.values() for choice in axis.choices
}
"""Every choice by its name."""
if len(CHOICES) < sum(len(axis.choices) for axis in AXES.values()):
    _names = [choice.name for axis in AXES.values() for choice in axis.choices]
    raise ValueError(f"two choices are called {next(n for n in _names if _names.count(n) > 1)!r}")
