"""The pool: made before the load, brought back after the cut. Commands only; the trial runs them."""

from __future__ import annotations

from collections.abc import Sequence

from torture.matrix.axes import Disks, Layout
from torture.matrix.cells import Cell
from torture.nas.slog import slog_layout
from torture.recording.disks import Persistence, ShelfDisk

POOL = "tank"
ZVOL = f"{POOL}/vm"
ZVOL_DEVICE = f"/dev/zvol/{ZVOL}"
ZVOL_MIB = 512

_DATA_MIB = 4096
_BY_SERIAL = "/dev/disk/by-id/virtio-"
_SETTLE = "udevadm settle --timeout=20 || udevadm settle --timeout=20"
"""Rarely udevd hangs up on the first one ("Broken pipe")."""

_DATA_VDEVS: dict[Layout, tuple[tuple[str, ...], int]] = {
    Layout.SINGLE: ((), 1),
    Layout.MIRRORED: (("mirror",), 2),
    Layout.RAIDZ1: (("raidz1",), 3),
}
"""How `zpool create` is told of the data disks, and how many they are."""

_PERSISTENCE = {
    Disks.PLP: Persistence.PLP,
    Disks.VOLATILE: Persistence.VOLATILE,
    Disks.LYING: Persistence.LYING,
}


def pool_disks(cell: Cell) -> tuple[ShelfDisk, ...]:
    """Every disk the NAS of this cell needs for its pool, data disks first."""
    return (*_data_disks(cell), *slog_layout(cell.slog, cell.slog_class).disks)


def _data_disks(cell: Cell) -> tuple[ShelfDisk, ...]:
    _, count = _DATA_VDEVS[cell.layout]
    persistence = _PERSISTENCE[cell.disks]
    return tuple(
        ShelfDisk(serial=f"data{number}", size_mib=_DATA_MIB, persistence=persistence)
        for number in range(count)
    )


def wait_for_disks_script(disks: Sequence[ShelfDisk]) -> str:
    """Shell: return once udev knows each of these disks, fail when one says it has no write cache.

    From 2.3 on ZFS skips flushes for a disk without a write cache: nothing would be tested. Prints
    a line a disk, its serial and its cache's mode.
    """
    lines = ["set -eu"]
    for disk in disks:
        link = f"{_BY_SERIAL}{disk.serial}"
        lines += [
            wait_for_path_script(link),
            f"cache=$(cat /sys/block/$(basename $(readlink -f {link}))/queue/write_cache)",
            f'echo "{disk.serial} $cache"',
            'test "$cache" = "write back"',
        ]
    return "\n".join([*lines, _SETTLE])


def wait_for_path_script(path: str) -> str:
    """Shell: return once a path is there, fail after 20 s and say so."""
    return (
        f"for i in $(seq 400); do test -e {path} && break; sleep 0.05; done; "
        f"test -e {path} || {{ echo 'no {path} after 20 s' >&2; exit 1; }}"
    )


def create_script(cell: Cell) -> str:
    """Shell: make the pool and the zvol, and wait for the zvol's device."""
    serials = {disk.serial for disk in pool_disks(cell)}
    kind, _ = _DATA_VDEVS[cell.layout]
    vdevs = (
        *kind,
        *(disk.serial for disk in _data_disks(cell)),
        *slog_layout(cell.slog, cell.slog_class).vdev_words,
    )
    words = [f"{_BY_SERIAL}{word}" if word in serials else word for word in vdevs]
    return "\n".join(
        (
            "set -eu",
            f"zpool create -f -o cachefile=none -O compression=off {POOL} {' '.join(words)}",
            f"zfs create -s -V {ZVOL_MIB}M -o sync={cell.sync} {ZVOL}",
            wait_for_path_script(ZVOL_DEVICE),
            f"cache=$(cat /sys/block/$(basename $(readlink -f {ZVOL_DEVICE}))/queue/write_cache)",
            'test "$cache" = "write back"',
        )
    )


def import_command(*options: str) -> tuple[str, ...]:
    """Import the pool from its disks by serial, as after a boot."""
    return ("zpool", "import", "-d", "/dev/disk/by-id", "-o", "cachefile=none", *options, POOL)


SCRUB = ("zpool", "scrub", "-w", POOL)
STATUS = ("zpool", "status", "-j", POOL)
