"""Pieces of shell that guests run."""

from __future__ import annotations


def wait_for_path(path: str) -> str:
    """Shell: return once a path is there, fail after 20 s and say so."""
    return (
        f"for i in $(seq 400); do test -e {path} && break; sleep 0.05; done; "
        f"test -e {path} || {{ echo 'no {path} after 20 s' >&2; exit 1; }}"
    )


def write_cache_of(device: str) -> str:
    """Shell: print the mode of a block device's write cache (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/write_cache"


def discards_of(device: str) -> str:
    """Shell: print how much a block device takes in one discard (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/discard_max_bytes"


def sector_bytes_of(device: str) -> str:
    """Shell: print the size of a block device's logical sectors (queue-sysfs), links followed."""
    return f"cat /sys/block/$(basename $(readlink -f {device}))/queue/logical_block_size"
