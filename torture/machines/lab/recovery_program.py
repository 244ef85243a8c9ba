"""The program that recovers pools on the host with OpenZFS's library: built once, in the cache.

It is a base of its own in the cache (`bases/native-KEY`): an edit of its sources builds it again, in a
minute, and no image. `vmimages/zfs/native` has the sources and the recipe.
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

_NAME = "native"
_SOURCES = FOLDER / "native"
_RECIPE = _SOURCES / "recipe.toml"
_PROGRAM = "native-recover"
_LIBRARY = "libzpool6linux"


def recovery_recipe(zfs: ZfsVersion) -> Recipe:
    """The recipe of the program with this version's library.

    Raises `HarnessError` for a version that it is not written for. A planted bug is in the kernel's
    modules only, and a source tree has its library elsewhere.
    """
    try:
        content = tomllib.loads(_RECIPE.read_text())
        packages, programs = tuple(content["packages"]), content["programs"]
        versions = content["versions"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise HarnessError(f"{_RECIPE}: {error!r}", hint="correct the recipe") from error
    if zfs.name not in versions:
        raise HarnessError(
            f"the native engine is not written for ZFS {zfs.name}",
            hint=f"--engine kernel, or --zfs {versions[0]}",
        )
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


def ensure_recovery_program(zfs: ZfsVersion, *, progress: Callable[[str], None]) -> None:
    """Build the program if it is missing: a minute. Raises `HarnessError` when that fails."""
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
    """The program as a file: where trials have their scratch, files may not be executable."""
    archive, program = made / "base.tar", made / _PROGRAM
    with tarfile.open(archive) as base:
        program.write_bytes(read_member(base, f"./{_PROGRAM}"))
    program.chmod(0o755)
    archive.unlink()


def recovery_program(zfs: ZfsVersion) -> Path:
    """The path of the built program; builds nothing.

    Raises `HarnessError` when it was not built, or with another version of ZFS than the NAS has.
    """
    recipe = recovery_recipe(zfs)
    place = Cache().find("bases", _slot(recipe))
    nas = find("nas", zfs=zfs.name)
    if place is None or nas is None:
        raise HarnessError(
            f"the native engine is not built for ZFS {zfs.name}",
            hint="tools/run suites/replay --engine native builds it",
        )
    library = json.loads((place / "packages.json").read_text()).get(_LIBRARY)
    if library != nas.manifest["zfs"]:
        raise HarnessError(
            f"the native engine has ZFS {library}, the NAS {nas.manifest['zfs']}",
            hint=f"rm -r {place}, tools/images build --fresh, and start again",
        )
    return place / _PROGRAM


def _slot(recipe: Recipe) -> str:
    return f"{recipe.name}-{recipe.base_key}"
