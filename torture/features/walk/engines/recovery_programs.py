"""The programs that recover pools in a walk, in the NAS and on the host: built once, in the cache.

They are a base of their own in the cache (`bases/recovery-KEY`): an edit of their sources builds them
again, in two minutes, and no image. `vmimages/zfs/recovery` has the sources and the recipe.
"""

from __future__ import annotations

import json
import re
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from threading import Event

from torture.errors import HarnessError
from torture.facts.linux.kernels import DEFAULT_KERNELS, Kernels
from torture.facts.zfs.versions import FOLDER, PLANTED, ZfsVersion
from torture.machines.images import find
from torture.machines.images.assemble import read_member
from torture.machines.images.bases import BUILD_DEADLINE_S, build_base
from torture.machines.images.cache import Cache
from torture.machines.images.recipes import Recipe
from torture.machines.images.source_trees import SourceTree

_NAME = "recovery"
_SOURCES = FOLDER / "recovery"
_RECIPE = _SOURCES / "recipe.toml"
_STAGE = _SOURCES / "stage.sh"
_IN_NAS, _ON_HOST = "recover", "native-recover"
_PACKAGE = "libzfslinux-dev"


def recovery_recipe(zfs: ZfsVersion) -> Recipe:
    """The recipe of the programs with this version's libraries, and with its planted bug.

    Raises `HarnessError` for a version that the programs are not written for.
    """
    try:
        content = tomllib.loads(_RECIPE.read_text())
        packages = content["packages_for_source" if zfs.is_built else "packages"]
        programs = content["programs"]
        since, before = content["since"], content["before"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise HarnessError(f"{_RECIPE}: {error!r}", hint="correct the recipe") from error
    if not _numbers(since) <= _numbers(zfs.name) < _numbers(before):
        raise HarnessError(
            f"walks are not written for ZFS {zfs.name}",
            hint=f"--zfs with a version since {since} and before {before}",
        )
    stages: tuple[Path, ...] = (_STAGE,)
    if zfs.is_built:
        stages = (_SOURCES / "from_source.sh", _STAGE)
    elif zfs.patch is not None:
        stages = (_SOURCES / "planted.sh", PLANTED / "stage.sh", _STAGE)
    return Recipe(
        name=_NAME,
        path=_RECIPE,
        suite=zfs.suite,
        components=zfs.components,
        backports=zfs.backports,
        packages=tuple(packages),
        stages=stages,
        programs=tuple(_SOURCES / name for name in programs),
        source=zfs.name if zfs.is_built else "",
        patch=zfs.patch,
    )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version's name, without a tree's hash and a planted bug."""
    return tuple(map(int, re.split(r"[-+]", version)[0].split(".")))


def ensure_recovery_programs(
    zfs: ZfsVersion, *, progress: Callable[[str], None], tree: SourceTree | None = None
) -> None:
    """Build the programs if they are missing: minutes. Raises `HarnessError` when that fails.

    `tree` is the source tree of the version, if that is not Debian's.
    """
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
            log, trees = cache.log(slot), () if tree is None else (tree,)
            build_base(
                recipe, made, log=log, progress=progress, stop=Event(), keep=keep, trees=trees
            )
            _unpack(made)
            cache.publish(made, "bases", slot)


def _unpack(made: Path) -> None:
    """The programs as files: where trials have their scratch, files may not be executable."""
    archive = made / "base.tar"
    with tarfile.open(archive) as base:
        for name in (_IN_NAS, _ON_HOST):
            if name != _IN_NAS and f"./{name}" not in base.getnames():
                continue  # the library has not the file of the planted bug
            (made / name).write_bytes(read_member(base, f"./{name}"))
            (made / name).chmod(0o755)
    archive.unlink()


def guest_program(zfs: ZfsVersion, linux: Kernels = DEFAULT_KERNELS) -> bytes:
    """The program that a NAS with this ZFS runs, as a file's content; raises `HarnessError`."""
    return (_built(zfs, linux) / _IN_NAS).read_bytes()


def host_program(zfs: ZfsVersion, linux: Kernels = DEFAULT_KERNELS) -> Path:
    """The program with this version of OpenZFS as a library.

    `linux`: the kernels of the lab, whose NAS must have the same version of ZFS.
    Raises `HarnessError` for a planted bug in a file that the library does not have, too.
    """
    program = _built(zfs, linux) / _ON_HOST
    if not program.exists():
        raise HarnessError(
            f"the native engine has not the bug of {zfs.name}", hint="--engine kernel"
        )
    return program


def _built(zfs: ZfsVersion, linux: Kernels) -> Path:
    """The folder of the programs; builds nothing.

    Raises `HarnessError` when they were not built, or with another version of ZFS than the NAS has.
    """
    recipe = recovery_recipe(zfs)
    place = Cache().find("bases", _slot(recipe))
    nas = find("nas", zfs=zfs.name, linux=linux)
    if place is None or nas is None:
        raise HarnessError(
            f"the programs of a walk are not built for ZFS {zfs.name}",
            hint="tools/run suites/replay builds them",
        )
    library = json.loads((place / "packages.json").read_text()).get(_PACKAGE)
    # a tree's programs have its hash in their key, as its NAS has in its name
    if not zfs.is_built and library != nas.manifest["zfs"]:
        raise HarnessError(
            f"the programs of a walk have ZFS {library}, the NAS {nas.manifest['zfs']}",
            hint=f"rm -r {place}, tools/images build --fresh, and start again",
        )
    return place


def _slot(recipe: Recipe) -> str:
    return f"{recipe.name}-{recipe.base_key}"
