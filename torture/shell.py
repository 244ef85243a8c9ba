"""Pieces of shell that guests run."""

from __future__ import annotations


def wait_for_path(path: str) -> str:
    """Shell: return once udev has made this device, or a link to it; fail with a message after 20 s.

    `udevadm wait` (udevadm(8)) leaves udev the processor, of which an emulated guest has little; a
    poll 20 times a second did not.
    """
    return (
        f"udevadm wait --timeout=20 {path} || test -e {path} || "
        f"{{ echo 'no {path} after 20 s' >&2; exit 1; }}"
    )


def write_cache_of(device: str) -> str:
    """Shell: print the mode of a block device's write cache (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/write_cache"


def discards_of(device: str) -> str:
    """Shell: print how much a block device takes in one discard (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/discard_max_bytes"


def physical_sector_of(device: str) -> str:
    """Shell: print the size of a block device's physical sectors (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/physical_block_size"


def sector_bytes_of(device: str) -> str:
    """Shell: print the size of a block device's logical sectors (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/logical_block_size"
