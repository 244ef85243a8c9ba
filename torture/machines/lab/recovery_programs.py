"""The programs that recover pools in a walk, in the NAS and on the host: built once, in the cache.

They are a base of their own in the cache (`bases/recovery-KEY`): an edit of their sources builds them
again, in a minute, and no image. `vmimages/zfs/recovery` has the sources and the recipe.
"""

from __future__ import annotations

import json
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from threading import Event

from torture.errors import HarnessError
from torture.facts.zfs.versions import FOLDER, ZfsVersion
from torture.machines.images import find
from torture.machines.images.assemble import read_member
from torture.machines.images.bases import BUILD_DEADLINE_S, build_base
from torture.machines.images.cache import Cache
from torture.machines.images.recipes import Recipe

_NAME = "recovery"
_SOURCES = FOLDER / "recovery"
_RECIPE = _SOURCES / "recipe.toml"
_IN_NAS, _ON_HOST = "recover", "native-recover"
_LIBRARY = "libzpool6linux"


def recovery_recipe(zfs: ZfsVersion) -> Recipe:
    """The recipe of the programs with this version's libraries.

    A planted bug is in the kernel's modules only: the libraries are those of the version without it.
    Raises `HarnessError` for a version that the programs are not written for.
    """
    try:
        content = tomllib.loads(_RECIPE.read_text())
        packages, programs = tuple(content["packages"]), content["programs"]
        versions = content["versions"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise HarnessError(f"{_RECIPE}: {error!r}", hint="correct the recipe") from error
    if zfs.name not in versions and (zfs.planted is None or zfs.name.split("+")[0] not in versions):
        raise HarnessError(f"walks are not written for ZFS {zfs.name}", hint=f"--zfs {versions[0]}")
    return Recipe(
        name=_NAME,
        path=_RECIPE,
        suite=zfs.suite,
        components=zfs.components,
        backports=zfs.backports,
        packages=packages,
        stages=(_SOURCES / "stage.sh",),
        programs=tuple(_SOURCES / name for name in programs),
    )


def ensure_recovery_programs(zfs: ZfsVersion, *, progress: Callable[[str], None]) -> None:
    """Build the programs if they are missing: a minute. Raises `HarnessError` when that fails."""
    recipe = recovery_recipe(zfs)
    cache, slot = Cache(), _slot(recipe)
    if cache.find("bases", slot):
        return
    cache.prepare()
    with cache.locked(slot, deadline_s=BUILD_DEADLINE_S, progress=progress):
        if cache.find("bases", slot):
            return
        cache.require_room()
        with cache.workspace(slot) as (work, keep):
            made = work / "made"
            made.mkdir()
            log = cache.log(slot)
            build_base(recipe, made, log=log, progress=progress, stop=Event(), keep=keep)
            _unpack(made)
            cache.publish(made, "bases", slot)


def _unpack(made: Path) -> None:
    """The programs as files: where trials have their scratch, files may not be executable."""
    archive = made / "base.tar"
    with tarfile.open(archive) as base:
        for name in (_IN_NAS, _ON_HOST):
            (made / name).write_bytes(read_member(base, f"./{name}"))
            (made / name).chmod(0o755)
    archive.unlink()


def guest_program(zfs: ZfsVersion) -> bytes:
    """The program that a NAS with this ZFS runs, as a file's content; raises `HarnessError`."""
    return (_built(zfs) / _IN_NAS).read_bytes()


def host_program(zfs: ZfsVersion) -> Path:
    """The program with OpenZFS as a library.

    Raises `HarnessError` for a planted bug, too, which the library does not have.
    """
    if zfs.planted is not None:
        raise HarnessError(
            f"the native engine has not the bug of {zfs.name}", hint="--engine kernel"
        )
    return _built(zfs) / _ON_HOST


def _built(zfs: ZfsVersion) -> Path:
    """The folder of the programs; builds nothing.

    Raises `HarnessError` when they were not built, or with another version of ZFS than the NAS has.
    """
    recipe = recovery_recipe(zfs)
    place = Cache().find("bases", _slot(recipe))
    nas = find("nas", zfs=zfs.name)
    if place is None or nas is None:
        raise HarnessError(
            f"the programs of a walk are not built for ZFS {zfs.name}",
            hint="tools/run suites/replay builds them",
        )
    library = json.loads((place / "packages.json").read_text()).get(_LIBRARY)
    if library != nas.manifest["zfs"]:
        raise HarnessError(
            f"the programs of a walk have ZFS {library}, the NAS {nas.manifest['zfs']}",
            hint=f"rm -r {place}, tools/images build --fresh, and start again",
        )
    return place


def _slot(recipe: Recipe) -> str:
    return f"{recipe.name}-{recipe.base_key}"
