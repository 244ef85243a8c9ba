"""The pool: made before the load, brought back after the cut. Commands only; the trial runs them."""

from __future__ import annotations

from torture.matrix.axes import Slog, Sync
from torture.nas.slog import slog_layout
from torture.shelf.server import ShelfDisk

POOL = "tank"
ZVOL = f"{POOL}/vm"
ZVOL_DEVICE = f"/dev/zvol/{ZVOL}"
ZVOL_MIB = 512

_DATA_DISK = ShelfDisk(serial="data0", size_mib=4096)
_BY_SERIAL = "/dev/disk/by-id/virtio-"


def pool_disks(slog: Slog) -> tuple[ShelfDisk, ...]:
    """Every disk the NAS needs for a pool with these log devices, data disks first."""
    return (_DATA_DISK, *slog_layout(slog).disks)


def wait_for_disks_script(slog: Slog) -> str:
    """Shell: return once udev knows every disk, fail when one says it has no write cache.

    From 2.3 on ZFS skips flushes for a disk without a write cache: nothing would be tested.
    """
    lines = ["set -eu"]
    for disk in pool_disks(slog):
        link = f"{_BY_SERIAL}{disk.serial}"
        lines += [
            wait_for_path_script(link),
            f"cache=$(cat /sys/block/$(basename $(readlink -f {link}))/queue/write_cache)",
            f'echo "{disk.serial} $cache"',
            'test "$cache" = "write back"',
        ]
    return "\n".join([*lines, "udevadm settle --timeout=20"])


def wait_for_path_script(path: str) -> str:
    """Shell: return once a path is there, fail after 20 s and say so."""
    return (
        f"for i in $(seq 400); do test -e {path} && break; sleep 0.05; done; "
        f"test -e {path} || {{ echo 'no {path} after 20 s' >&2; exit 1; }}"
    )


def create_script(slog: Slog, sync: Sync) -> str:
    """Shell: make the pool and the zvol, and wait for the zvol's device."""
    words = [
        f"{_BY_SERIAL}{word}" if word.startswith("slog") else word
        for word in slog_layout(slog).vdev_words
    ]
    return "\n".join(
        (
            "set -eu",
            f"zpool create -f -o cachefile=none -O compression=off {POOL} "
            f"{_BY_SERIAL}{_DATA_DISK.serial} {' '.join(words)}",
            f"zfs create -s -V {ZVOL_MIB}M -o sync={sync} {ZVOL}",
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
