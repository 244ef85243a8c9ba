"""The pool's log devices: which disks they take and how `zpool create` is told."""

from __future__ import annotations

from dataclasses import dataclass

from torture.matrix.axes import Slog
from torture.shelf.server import ShelfDisk

_LOG_MIB = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class SlogLayout:
    """Disks of their own, and the words that end the `zpool create` line."""

    disks: tuple[ShelfDisk, ...]
    vdev_words: tuple[str, ...]


_LAYOUTS = {
    Slog.NONE: SlogLayout(disks=(), vdev_words=()),
    Slog.SINGLE: SlogLayout(
        disks=(ShelfDisk(serial="slog0", size_mib=_LOG_MIB),), vdev_words=("log", "slog0")
    ),
}


def slog_layout(slog: Slog) -> SlogLayout:
    """The layout of a choice on the SLOG axis."""
    return _LAYOUTS[slog]
