"""A zvol: a block device of the pool (zfsprops(7), zvol in zfs-create(8))."""

from __future__ import annotations

from torture.shell import wait_for_path, write_cache_of
from torture.volumes import SIZE_MIB, VOLUME, VolumeOptions

DEVICE = f"/dev/zvol/{VOLUME}"


def make_script(options: VolumeOptions) -> str:
    """Shell: make the zvol, sparse, wait for its device, and insist on its write cache."""
    return "\n".join(
        (
            "set -eu",
            f"zfs create -s -V {SIZE_MIB}M {options.words} {VOLUME}",
            wait_for_path(DEVICE),
            f'test "$({write_cache_of(DEVICE)})" = "write back"',
        )
    )


def wait_script() -> str:
    """Shell: return once the device of an imported pool's zvol is there, fail after 20 s."""
    return wait_for_path(DEVICE)
