"""Finds or makes images: the bases that are missing, in parallel, then the quick layer of each."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from torture.errors import HarnessError
from torture.facts.linux.kernels import DEFAULT_KERNELS, Kernels
from torture.facts.zfs.versions import DEFAULT
from torture.machines.host.scratch import CACHE_VARIABLE
from torture.machines.images.assemble import assemble
from torture.machines.images.bases import BUILD_DEADLINE_S, build_base
from torture.machines.images.cache import INITRD, KERNEL, MANIFEST, ROOT, Cache, content_digest
from torture.machines.images.recipes import Recipe, image_names, images_of_every_run, read_recipe
from torture.machines.images.source_trees import NO_PATCHES, PatchSeries, SourceTree

IMAGES = images_of_every_run()

_ASSEMBLE_DEADLINE_S = 300
_ARCHIVE = "base.tar"
_MODULES = "zfs-dkms"
"""The package of ZFS's modules."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GuestImage:
    """One finished image; its files never change."""

    name: str
    key: str
    """Changes whenever any part of the image may have changed."""
    kernel: Path
    initrd: Path
    root: Path
    """A squashfs; give it to the guest as a read-only virtio disk."""
    manifest: Mapping[str, str]
    """Package to version, and `kernel` (its release) and `zfs` (the module's version)."""

    @property
    def sha256(self) -> str:
        """See `content_digest`; computed first where the image was built without it."""
        return content_digest(self.root.parent)

    def mark_used(self) -> None:
        """Keep it from being removed as long unused: a run may last for days."""
        with suppress(OSError):  # a cache built by another user is good to read
            os.utime(self.root.parent)


def find(name: str, *, zfs: str = DEFAULT, linux: Kernels = DEFAULT_KERNELS) -> GuestImage | None:
    """The finished image of the recipe as it is now, or None; builds nothing.

    `zfs`: the version of ZFS that the NAS has.
    """
    recipe = read_recipe(name, zfs=zfs, linux=linux)
    key = recipe.image_key
    place = Cache().find("images", f"{name}-{key}")
    if place is None:
        return None
    return GuestImage(
        name=name,
        key=key,
        kernel=place / KERNEL,
        initrd=place / INITRD,
        root=place / ROOT,
        manifest=json.loads((place / MANIFEST).read_text()),
    )


def ensure(name: str, *, progress: Callable[[str], None]) -> GuestImage:
    """The image of this name, built first if necessary: seconds, or minutes for new packages.

    Raises `HarnessError`, with the log's path and its end, when the build fails.
    """
    return ensure_all((name,), progress=progress)[0]


def ensure_all(
    names: Sequence[str],
    *,
    progress: Callable[[str], None],
    fresh: bool = False,
    zfs: str = DEFAULT,
    linux: Kernels = DEFAULT_KERNELS,
    trees: Sequence[SourceTree] = (),
    patches: PatchSeries = NO_PATCHES,
) -> list[GuestImage]:
    """The images of these names; missing ones are built in parallel.

    `fresh` builds all of them again, to get newer packages from the mirror. `trees` are the source
    trees that have to be built, and `patches` are those of Linux.
    """
    if unknown := set(names) - set(image_names()):
        raise HarnessError(
            f"no image is called {', '.join(sorted(unknown))}",
            hint=f"known: {', '.join(image_names())}",
        )
    recipes = [read_recipe(name, zfs=zfs, linux=linux) for name in names]
    if not fresh:
        found = [find(name, zfs=zfs, linux=linux) for name in names]
        if all(found):
            return [image for image in found if image]
    cache = Cache()
    cache.prepare()
    builder = _Builder(
        cache=cache,
        progress=progress,
        fresh=fresh,
        trees=trees,
        patches=patches,
    )
    bases = builder.bases(recipes)
    for recipe in recipes:
        builder.image(recipe, bases)
    images = [find(name, zfs=zfs, linux=linux) for name in names]
    if not all(images):
        raise HarnessError(
            "a recipe was edited while its image was being built", hint="tools/images build"
        )
    return [image for image in images if image]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Builder:
    """The wishes of one call of `ensure_all`."""

    cache: Cache
    progress: Callable[[str], None]
    fresh: bool
    trees: Sequence[SourceTree]
    patches: PatchSeries
    stop: Event = field(default_factory=Event)
    """Ends the building of all bases."""

    def bases(self, recipes: Sequence[Recipe]) -> dict[str, Path]:
        """The base of each recipe and of the stages that it needs, by its slot."""
        wanted = {
            made.base_slot: made
            for recipe in recipes
            for made in (recipe, recipe.kernel, recipe.modules, recipe.added)
            if made
        }
        with ThreadPoolExecutor(max_workers=len(wanted)) as workers:
            jobs = {slot: workers.submit(self._base, recipe) for slot, recipe in wanted.items()}
            try:
                wait(jobs.values(), return_when=FIRST_EXCEPTION)
                for job in jobs.values():
                    if job.done():
                        job.result()
            finally:
                self.stop.set()
        return {slot: job.result() for slot, job in jobs.items()}

    def _base(self, recipe: Recipe) -> Path:
        def build(made: Path, keep: int) -> None:
            self.cache.require_room()
            build_base(
                recipe,
                made,
                log=self.cache.log(recipe.base_slot),
                progress=self.progress,
                stop=self.stop,
                keep=keep,
                compiled=self.cache.compiled,
                trees=self.trees,
                patches=self.patches,
            )

        slot = recipe.base_slot
        return self._ensure("bases", slot, build, deadline_s=BUILD_DEADLINE_S, stop=self.stop)

    def image(self, recipe: Recipe, bases: Mapping[str, Path]) -> None:
        """The quick layer of an image, on its bases."""
        kernel = recipe.kernel
        assert kernel is not None, "an image has a kernel"
        of_base, of_kernel = bases[recipe.base_slot], bases[kernel.base_slot]
        of_modules = None if recipe.modules is None else bases[recipe.modules.base_slot] / _ARCHIVE
        of_added = None if recipe.added is None else bases[recipe.added.base_slot] / _ARCHIVE

        def build(made: Path, _keep: int) -> None:
            base, archive = of_base / _ARCHIVE, of_kernel / _ARCHIVE
            release = assemble(
                recipe, base=base, kernel=archive, modules=of_modules, added=of_added, into=made
            )
            patches = "" if recipe.modules is None else recipe.modules.patches
            manifest = _manifest(of_base, of_kernel, release, built=kernel.source, patches=patches)
            if recipe.added is not None:
                manifest[recipe.added.name] = recipe.added.source
            (made / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True))
            content_digest(made)

        slot = f"{recipe.name}-{recipe.image_key}"
        self._ensure("images", slot, build, deadline_s=_ASSEMBLE_DEADLINE_S)

    def _ensure(
        self,
        kind: str,
        slot: str,
        build: Callable[[Path, int], None],
        *,
        deadline_s: float,
        stop: Event | None = None,
    ) -> Path:
        """The finished folder of a slot. One process builds it while others wait."""
        if not self.fresh and (place := self.cache.find(kind, slot)):
            return place
        with self.cache.locked(slot, deadline_s=deadline_s, progress=self.progress, stop=stop):
            if not self.fresh and (place := self.cache.find(kind, slot)):
                return place
            start = time.monotonic()
            with _full_disk_is_clear(self.cache), self.cache.workspace(slot) as (work, keep):
                made = work / "made"
                made.mkdir()
                build(made, keep)
                self.cache.forget(kind, slot)
                place = self.cache.publish(made, kind, slot)
            self.progress(f"{slot}: ready in {kind} ({time.monotonic() - start:.1f} s)")
            return place


def kernel_in_words(release: str, package: str, patches: str = "") -> str:
    """The kernel's release, a hash of patches, and its package's version where that says more.

    Of Debian bookworm a release is the same for many versions, e.g. `6.1.0-56-cloud-amd64 (6.1.192-2)`.
    """
    name = f"{release}+{patches}" if patches else release
    is_said = not package or release.startswith(package.partition("-")[0])
    return name if is_said else f"{name} ({package})"


def _manifest(
    base: Path, kernel: Path, release: str, *, built: str = "", patches: str = ""
) -> dict[str, str]:
    """The versions in an image; tools and modules of ZFS must be of the same version.

    `built` is the version of tools and modules that were built from source. A client's kernel that no
    ZFS fits has no modules of it.
    """
    packages: dict[str, str] = json.loads((base / "packages.json").read_text())
    of_kernel: dict[str, str] = json.loads((kernel / "packages.json").read_text())
    words = kernel_in_words(release, of_kernel.get(f"linux-image-{release}", ""), patches)
    module = built or of_kernel.get(_MODULES)
    if module is None:
        return packages | {"kernel": words, "zfs": "none"}
    tools = packages.get("zfsutils-linux", module)
    if tools != module:
        raise HarnessError(
            f"ZFS's tools are {tools}, its modules {module}: the mirror moved between two builds",
            hint="tools/images build --fresh",
        )
    return packages | {"kernel": words, "zfs": module}


@contextmanager
def _full_disk_is_clear(cache: Cache) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise HarnessError(
            f"the disk of {cache.root} is full",
            hint=f"make room, or set {CACHE_VARIABLE} to a folder on another disk",
        ) from error
