"""The recipes of the guest images, read from `vmimages/`, and the keys of their results."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.facts.linux.kernels import (
    BACKPORTS,
    DEFAULT_KERNELS,
    Kernels,
    LinuxVersion,
    linux_version,
    why_unfit,
)
from torture.facts.zfs.versions import DEFAULT, PLANTED, ZfsVersion, zfs_version
from torture.files import CHECKOUT

RECIPES = CHECKOUT / "vmimages"

KERNEL = "kernel"
"""The stage that provides an image's kernel and modules; each pair of Linux and ZFS has one."""

MODULES = "modules"
"""The stage that builds modules of a kernel again, with patches."""

BASE_FORMAT = 1
"""Part of every base's key. Raise it when `bases.py` begins to call mmdebstrap differently."""

_STAGE = "stage.sh"
"""The script of a recipe that names none, if its folder has it."""

_OLD_KMOD = "old-kmod.sh"
"""The stage of a suite whose kmod is old: it comes from the kernel's recipe, whose suite the root is."""
_BUILDING_ZFS = ("linux-headers-cloud-amd64", "zfs-dkms", "gcc", "libc6-dev", "make")
"""The packages with which a kernel's stage builds the modules of ZFS."""

_BUILDING_MODULES = (
    "linux-headers-cloud-amd64",
    "linux-source",
    "gcc",
    "libc6-dev",
    "make",
    "patch",
)
"""The packages with which some modules of a kernel are built again."""
_PATCHED = "patched.sh"
_BUILDING_ADDED = (
    "linux-headers-cloud-amd64",
    "binutils",
    "ccache",
    "gcc",
    "kmod",
    "libc6-dev",
    "make",
    "patch",
    "perl",
)
"""The packages with which a source tree's modules and programs are built for a kernel."""
_DEBIANS_KERNEL = ("linux-headers-cloud-amd64",)
"""Packages that would have ZFS built for the kernel of the suite, too."""

_KEY_CHARS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """One folder of `vmimages/`: Debian packages (slow layer) and the suite's files (quick layer)."""

    name: str
    suite: str
    components: tuple[str, ...]
    packages: tuple[str, ...]
    backports: tuple[str, ...] = ()
    """Source packages whose binaries come from the suite's backports; all other packages are the
    suite's own."""
    zfs_from: str = ""
    """The other suite that the source package of ZFS comes from, if it is not this one's."""
    stages: tuple[Path, ...] = ()
    """Scripts run in the root of the packages; the last leaves `/stage.tar`, which becomes the base."""
    programs: tuple[Path, ...] = ()
    """Sources in C that the last stage compiles for the NAS."""
    source: str = ""
    """The version of the source tree that its stages build; empty where they need none."""
    linux_source: str = ""
    """The version of the source tree of Linux that its stages build; empty where they need none."""
    patch: Path | None = None
    """The change that its first stage makes in the sources that it builds."""
    files: tuple[Path, ...] = ()
    """Folders copied over the root, in this order."""
    python: tuple[tuple[Path, str], ...] = ()
    """Python packages to compile and install: folder on the host, path in the guest."""
    udev_rules: tuple[str, ...] = ()
    """The only rule files of udev that stay; without any, all do."""
    initrd_modules: tuple[str, ...] = ()
    path: Path
    """The path of the recipe itself."""
    extends: Recipe | None = None
    """The recipe that it extends by its own entries."""
    follows_zfs: bool = False
    """Whether each version of ZFS has its own variant, from that version's suite."""
    kernel: Recipe | None = None
    """The stage that provides its kernel; None for such a stage."""
    modules: Recipe | None = None
    """The stage that provides patched modules of this kernel; None without patches."""
    patches: str = ""
    """The digest of the patches to Linux that its stage applies."""
    added: Recipe | None = None
    """The stage that builds further modules and programs for this kernel; None without any."""

    @property
    def has_tree(self) -> bool:
        """Whether its stages build a source tree."""
        return bool(self.source or self.linux_source)

    @property
    def base_key(self) -> str:
        """The key of the slow layer: changes with the packages and the stage script, nothing else."""
        content = {
            "format": BASE_FORMAT,
            "suite": self.suite,
            "components": self.components,
            "packages": self.packages,
        }
        if self.backports:
            content["backports"] = self.backports
        if self.zfs_from:
            content["zfs_from"] = self.zfs_from
        if self.source:
            content["source"] = self.source
        if self.linux_source:
            content["linux_source"] = self.linux_source
        if self.patches:
            content["patches"] = self.patches
        parts = [json.dumps(content, sort_keys=True).encode()]
        parts += [script.read_bytes() for script in (*self.stages, *self.programs)]
        if self.patch is not None:
            parts.append(self.patch.read_bytes())
        return digest_of(parts)[:_KEY_CHARS]

    @property
    def base_slot(self) -> str:
        """The name of the slow layer in the cache: that of the extended recipe where this adds none."""
        is_same = self.extends is not None and self.extends.base_key == self.base_key
        name = self.extends.name if self.extends is not None and is_same else self.name
        return f"{name}-{self.base_key}"

    @property
    def image_key(self) -> str:
        """The key of the image: its base, the kernel's, the suite's files, the code that joins them."""
        trees = [*self.files, *(tree for tree, _ in self.python), RECIPES / "boot"]
        parts = [self.base_key.encode(), self.path.read_bytes()]
        if self.extends is not None:
            parts.append(self.extends.path.read_bytes())
        if self.kernel is not None:
            parts += [self.kernel.base_key.encode(), self.kernel.path.read_bytes()]
        if self.modules is not None:
            parts.append(self.modules.base_key.encode())
        if self.added is not None:
            parts.append(self.added.base_key.encode())
        for path in sorted(Path(__file__).parent.glob("*.py")):
            parts.append(path.read_bytes())
        for tree in trees:
            for path in tree_files(tree):
                executable = path.stat().st_mode & 0o100
                parts.append(f"{path.relative_to(tree)} {executable}".encode())
                parts.append(path.read_bytes())
        return digest_of(parts)[:_KEY_CHARS]


def read_kernel_recipe(zfs: ZfsVersion, linux: str = "") -> Recipe:
    """The stage with the modules of this ZFS, for the kernel of this name or else of its own suite.

    Raises `HarnessError` for a garbled recipe, and for two versions that do not fit.
    """
    if linux and (version := linux_version(linux)).base != zfs.suite:
        return _of_a_pair(zfs, version)
    recipe = _read(KERNEL, zfs.recipe, zfs)
    if zfs.patch is not None:
        stages = (PLANTED / _STAGE, *recipe.stages)
        return replace(recipe, patch=zfs.patch, stages=stages)
    return replace(recipe, source=zfs.name) if zfs.is_built else recipe


def _of_a_pair(zfs: ZfsVersion, linux: LinuxVersion) -> Recipe:
    """The stage of a kernel of another suite than ZFS; its root is of the kernel's suite."""
    if why := why_unfit(zfs, linux):
        raise HarnessError(why, hint="choose another kernel for the NAS, or another --zfs")
    kernel, own = _kernel_alone(linux), read_kernel_recipe(zfs)
    is_elsewhere = kernel.suite != own.suite
    *before, _ = kernel.stages
    own_stages = (stage for stage in own.stages if stage.name != _OLD_KMOD)
    building = own.packages if zfs.is_built else _BUILDING_ZFS
    if linux.is_built:
        building = tuple(name for name in building if name not in _DEBIANS_KERNEL)
    return replace(
        own,
        path=kernel.path,
        suite=kernel.suite,
        components=tuple(dict.fromkeys((*kernel.components, *own.components))),
        packages=tuple(dict.fromkeys((*kernel.packages, *building))),
        backports=(*kernel.backports, *(() if is_elsewhere else own.backports)),
        zfs_from=f"{own.suite}{BACKPORTS if own.backports else ''}" if is_elsewhere else "",
        stages=(*before, *own_stages),
        initrd_modules=kernel.initrd_modules,
        linux_source=kernel.linux_source,
    )


def _kernel_alone(linux: LinuxVersion) -> Recipe:
    """The stage of a kernel without ZFS."""
    recipe = _read(KERNEL, linux.recipe, zfs_version(DEFAULT))
    return replace(recipe, linux_source=linux.name) if linux.is_built else recipe


def _kernel_of_client(linux: str) -> Recipe:
    """A client's kernel, with the modules of its own ZFS where these fit."""
    zfs = zfs_version(DEFAULT)
    if why_unfit(zfs, version := linux_version(linux)):
        return _kernel_alone(version)
    return read_kernel_recipe(zfs, linux)


def _patched_modules(linux: str) -> Recipe | None:
    """The stage that builds the modules again that this kernel's patches change."""
    if not linux or not (version := linux_version(linux)).patches:
        return None
    kernel = _read(MODULES, version.recipe, zfs_version(DEFAULT))
    return replace(
        kernel,
        packages=(*kernel.packages, *_BUILDING_MODULES),
        stages=(version.recipe.parent / _PATCHED,),
        patches=version.patches,
    )


def read_recipe(name: str, *, zfs: str = DEFAULT, linux: Kernels = DEFAULT_KERNELS) -> Recipe:
    """The recipe of the image of this name, with this version of ZFS if it has any.

    An image with `follows_zfs` is the NAS's: it is made of that version's suite, modules and tools.
    Another image is a client's, whatever ZFS the NAS runs. Raises `HarnessError` when there is no
    such recipe, when it does not parse, or when kernel and ZFS do not fit.
    """
    path = RECIPES / name / "recipe.toml"
    if not path.exists():
        raise HarnessError(
            f"no recipe for an image {name!r}", hint=f"known are: {', '.join(image_names())}"
        )
    version = zfs_version(zfs)
    recipe = _read(name, path, version)
    own = linux.nas if recipe.follows_zfs else linux.client
    kernel = read_kernel_recipe(version, own) if recipe.follows_zfs else _kernel_of_client(own)
    added = _added_stage(path, kernel)
    return replace(recipe, kernel=kernel, modules=_patched_modules(own), added=added)


def _added_stage(path: Path, kernel: Recipe) -> Recipe | None:
    """The stage of the recipe's `added`: a source tree, built for this kernel."""
    asked = _parse(path).get("added")
    if asked is None:
        return None
    if kernel.linux_source:
        raise HarnessError(
            f"{path.parent.name} is built for kernels of Debian's, and the NAS's is a source tree's",
            hint="choose another --linux",
        )
    try:
        patch = asked.get("patch")
        return replace(
            kernel,
            name=asked["from"],
            packages=_BUILDING_ADDED,
            zfs_from="",
            stages=(RECIPES / asked["from"] / _STAGE,),
            source=asked["source"],
            patch=None if patch is None else RECIPES / asked["from"] / patch,
        )
    except KeyError as error:
        raise HarnessError(f"{path}: added: {error} is missing", hint="correct it") from error


def image_names() -> tuple[str, ...]:
    """Every folder of `vmimages/` with a recipe."""
    return tuple(sorted(path.parent.name for path in RECIPES.glob("*/recipe.toml")))


def images_of_every_run() -> tuple[str, ...]:
    """The images that every run needs; the others are built on demand."""
    return tuple(name for name in image_names() if not _is_on_demand(name))


def _is_on_demand(name: str) -> bool:
    return bool(_parse(RECIPES / name / "recipe.toml").get("on_demand", False))


def _read(name: str, path: Path, zfs: ZfsVersion) -> Recipe:
    content = _parse(path)
    # by `torture/facts/zfs/versions.py`, `torture/facts/linux/kernels.py`, and two functions of this file
    for read_elsewhere in ("zfs", "linux", "on_demand", "added"):
        content.pop(read_elsewhere, None)
    extended = None
    if (like := content.pop("extends", None)) is not None:
        extended = _read(like, RECIPES / like / "recipe.toml", zfs)
        without = frozenset(content.pop("without_packages", ()))
        content = _added_to(_parse(extended.path), content)
        content["packages"] = [name for name in content["packages"] if name not in without]
    if content.get("follows_zfs"):
        content |= {
            "suite": zfs.suite,
            "components": zfs.components,
            "backports": zfs.backports,
            "packages": [*content.get("packages", ()), *zfs.nas_packages],
        }
    try:
        recipe = Recipe(
            name=name,
            path=path,
            suite=content.pop("suite"),
            components=tuple(content.pop("components")),
            packages=tuple(content.pop("packages")),
            backports=tuple(content.pop("backports", ())),
            stages=_stages(path.parent, content.pop("stages", (_STAGE,))),
            files=tuple(RECIPES / tree for tree in content.pop("files", ())),
            python=tuple(
                (RECIPES / package["from"], package["to"]) for package in content.pop("python", ())
            ),
            udev_rules=tuple(content.pop("udev_rules", ())),
            initrd_modules=tuple(content.pop("initrd_modules", ())),
            extends=extended,
            follows_zfs=content.pop("follows_zfs", False),
        )
    except KeyError as error:
        raise HarnessError(f"{path}: {error} is missing", hint="correct the recipe") from error
    if content:
        raise HarnessError(f"{path}: not known: {', '.join(content)}", hint="correct the recipe")
    return recipe


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise HarnessError(f"{path}: {error}", hint="correct the recipe") from error


def _added_to(extended: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Lists grow; every other entry is the recipe's own, or else the extended recipe's."""
    grown = {
        key: [*extended[key], *value]
        for key, value in own.items()
        if isinstance(value, list) and key in extended
    }
    return extended | own | grown


def _stages(folder: Path, names: Iterable[str]) -> tuple[Path, ...]:
    """These scripts of the recipe's folder; a recipe that names none need not have the usual one."""
    stages = [folder / name for name in names]
    return tuple(stage for stage in stages if stage.name != _STAGE or stage.exists())


def tree_files(tree: Path) -> list[Path]:
    """The regular files below a folder, sorted, without Python's caches."""
    return [
        path
        for path in sorted(tree.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def digest_of(parts: Iterable[bytes]) -> str:
    """SHA-256 of these parts, so that none can lend bytes to the next one."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
