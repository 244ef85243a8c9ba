"""A filesystem of the pool, and an image file in it (zfsprops(7), zfs-mount(8))."""

from __future__ import annotations

from torture.choices.volumes import SIZE_MIB, VOLUME, VolumeOptions

DIRECTORY = f"/{VOLUME}"
"""Its mount point in the NAS."""
IMAGE = f"{DIRECTORY}/disk.raw"


def make_script(options: VolumeOptions) -> str:
    """Shell: make the filesystem, mounted."""
    return f"set -eu; zfs create {options.words} {VOLUME}; {wait_script()}"


def make_image_script(options: VolumeOptions) -> str:
    """Shell: make the filesystem with a sparse image in it."""
    return f"{make_script(options)}; truncate -s {SIZE_MIB}M {IMAGE}; sync -f {IMAGE}"


def wait_script() -> str:
    """Shell: return once the filesystem of an imported pool is mounted; fail after 20 s.

    An earlier export would offer an empty directory of the NAS's own root, without an error.
    """
    return (
        f"for i in $(seq 400); do mountpoint -q {DIRECTORY} && break; sleep 0.05; done; "
        f"mountpoint -q {DIRECTORY} || {{ echo '{DIRECTORY} is not mounted after 20 s' >&2; exit 1; }}"
    )


def wait_for_image_script() -> str:
    """Shell: the same, and require the image in it."""
    return f"{wait_script()}; test -e {IMAGE} || {{ echo '{IMAGE} is gone' >&2; exit 1; }}"
