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


QUEUE = (
    "logical_block_size",
    "physical_block_size",
    "atomic_write_unit_max_bytes",
    "write_cache",
    "fua",
    "max_sectors_kb",
    "max_hw_sectors_kb",
    "discard_max_bytes",
    "write_zeroes_max_bytes",
)
"""The files of a block device's `queue` that promise something (Linux, sysfs-block)."""


def advertised_by(device: str) -> str:
    """Shell: print these promises on a line, `name=value`, underscores for blanks; links followed."""
    return (
        f"(cd /sys/block/$(basename $(readlink -f {device}))/queue; for n in {' '.join(QUEUE)}; do "
        "test ! -e $n || printf '%s=%s ' $n $(tr ' ' _ < $n); done; echo)"
    )


def physical_sector_of(device: str) -> str:
    """Shell: print the size of a block device's physical sectors (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/physical_block_size"


def sector_bytes_of(device: str) -> str:
    """Shell: print the size of a block device's logical sectors (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/logical_block_size"
