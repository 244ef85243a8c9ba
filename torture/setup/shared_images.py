"""Images of another host: packed into a shared folder, and fetched.

Only images are shared. A saved state of a machine fits the host on which it was made, and no other.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.linux.kernels import DEFAULT as DEFAULT_LINUX
from torture.facts.linux.kernels import DEFAULT_KERNELS, Kernels, linux_names
from torture.facts.zfs.versions import DEFAULT, version_names
from torture.files import whole_file
from torture.machines.images.build import GuestImage, find
from torture.machines.images.cache import Cache
from torture.machines.images.content import (
    DIGEST,
    INITRD,
    KERNEL,
    MANIFEST,
    ROOT,
    computed_digest,
    content_digest,
)
from torture.machines.images.recipes import image_names, read_recipe

IMAGES_VARIABLE = "TORTURE_IMAGES"
"""The variable with a folder from which the set-up fetches images instead of building them."""
_PARTS = (DIGEST, INITRD, KERNEL, MANIFEST, ROOT)
_LOCK_DEADLINE_S = 600
_HINT = "name a shared folder, and fill it: tools/images pack --to FOLDER"


def pack(name: str, into: Path, *, zfs: str, linux: Kernels = DEFAULT_KERNELS) -> GuestImage:
    """Copy a built image to `into`, as one archive; raises `HarnessError` when that fails."""
    image = find(name, zfs=zfs, linux=linux)
    if image is None:
        raise HarnessError(f"image {name!r} is not built", hint=f"tools/images build {name}")
    content_digest(image.root.parent)
    archive = into / f"{image.name}-{image.key}.tar"
    try:
        into.mkdir(parents=True, exist_ok=True)
        with whole_file(archive) as unfinished, tarfile.open(unfinished, mode="w") as tar:
            for part in _PARTS:
                tar.add(image.root.parent / part, arcname=part)
    except OSError as error:
        raise HarnessError(f"{archive}: {error}", hint=_HINT) from error
    return image


def shared_folder(text: str) -> Path:
    """The shared folder that a user names; a URL is refused, as no protocol is spoken here."""
    if "://" in text:
        raise HarnessError(f"{text} is a URL", hint="mount it, or copy it, and name that folder")
    return Path(text)


def fetch(name: str, source: Path, *, zfs: str, linux: Kernels = DEFAULT_KERNELS) -> GuestImage:
    """The image of this name, fetched where the cache has none.

    Raises `HarnessError` where `source` lacks it, or has one whose content is not its digest's.
    """
    image = find(name, zfs=zfs, linux=linux)
    return image or _fetched(name, zfs=zfs, linux=linux, source=source)


def place_of(name: str) -> Path:
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


def _fetched(name: str, *, zfs: str, linux: Kernels, source: Path) -> GuestImage:
    slot = f"{name}-{read_recipe(name, zfs=zfs, linux=linux).image_key}"
    archive = source / f"{slot}.tar"
    cache = Cache()
    cache.prepare()
    with (
        cache.locked(slot, deadline_s=_LOCK_DEADLINE_S, progress=lambda _text: None),
        cache.workspace(slot) as (work, _),
    ):
        if (image := find(name, zfs=zfs, linux=linux)) is not None:
            return image
        made = work / "made"
        made.mkdir()
        try:
            with tarfile.open(archive) as tar:
                _unpack(tar, made)
            said, computed = (made / DIGEST).read_text().strip(), computed_digest(made)
        except (tarfile.TarError, OSError) as error:
            raise HarnessError(f"{archive} is no whole image: {error}", hint=_HINT) from error
        if said != computed:
            raise HarnessError(
                f"{archive} is damaged: its content is {computed}, and it was packed as {said}",
                hint=_HINT,
            )
        cache.publish(made, "images", slot)
    image = find(name, zfs=zfs, linux=linux)
    assert image is not None, "it was just published"
    return image


def _unpack(tar: tarfile.TarFile, folder: Path) -> None:
    """Only the parts of an image, so that no name can lead out of the folder."""
    for info in tar:
        content = tar.extractfile(info) if info.isreg() and info.name in _PARTS else None
        if content is None:
            raise tarfile.TarError(f"{info.name[:80]!r} does not belong there")
        with (folder / info.name).open("wb") as file:
            shutil.copyfileobj(content, file)
