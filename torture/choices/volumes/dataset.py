"""A filesystem of the pool, and an image file in it (zfsprops(7), zfs-mount(8))."""

from torture.choices.volumes import VOLUME

DIRECTORY = f"/{VOLUME}"
"""Its mount point in the NAS."""
IMAGE = f"{DIRECTORY}/disk.raw"
