"""The built images: their folders, and a line for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.linux.kernels import DEFAULT as DEFAULT_LINUX
from torture.facts.linux.kernels import Kernels, linux_names
from torture.facts.zfs.versions import DEFAULT, version_names
from torture.machines.images.build import GuestImage, find
from torture.machines.images.recipes import image_names, read_recipe


def folder_of(name: str) -> Path:
    """The folder of a finished image; raises `HarnessError` when it is not built."""
    image = find(name)
    if image is None:
        raise HarnessError(f"image {name!r} is not built", hint=f"tools/images build {name}")
    return image.root.parent


def built_in_words() -> Iterator[str]:
    """A line for every image of the present recipes, and for each version of ZFS that has its own.

    Of other kernels it lists the images that are built.
    """
    for name in image_names():
        for zfs in version_names() if read_recipe(name).follows_zfs else (DEFAULT,):
            if (image := find(name, zfs=zfs)) is None:
                yield f"{name:16} not built; next: tools/images build {name} --zfs {zfs}"
            else:
                yield _line(name, image)
        for linux in linux_names():
            with suppress(HarnessError):  # not every ZFS runs in every kernel
                image = find(name, linux=Kernels.same(linux))
                if image is not None and linux != DEFAULT_LINUX:
                    yield _line(name, image)


def _line(name: str, image: GuestImage) -> str:
    size_mib = image.root.stat().st_size / 1024**2
    versions = f"kernel {image.manifest['kernel']}, zfs {image.manifest['zfs']}"
    return f"{name:16} {image.key}  {size_mib:.0f} MiB  {versions}, content {image.sha256[:16]}"
