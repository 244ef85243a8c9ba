"""A copy of the walk's native program that makes mistakes when environment variables ask for them.

The copy has the library of the default version of ZFS, as the program of that version has.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from threading import Event

from torture.facts.zfs.versions import DEFAULT, zfs_version
from torture.features.walk.engines.recovery_programs import recovery_recipe
from torture.machines.images.assemble import read_member
from torture.machines.images.bases import build_base
from torture.machines.images.recipes import Recipe

CONSTANT_LOAD_GUID = "CONSTANT_LOAD_GUID"
"""The variable. ZFS's cache knows a block by the load of its pool, too (module/zfs/arc.c, `buf_hash`)."""
UNREPORTED_READS = "UNREPORTED_READS"
"""The variable. Of 16 pages one alone is reported as read, so that proofs know too few places."""

_PROGRAM = "native-recover"
_IN_SOURCE = (
    "static uint64_t now_us(void) {",
    f"""\
uint64_t __real_spa_generate_load_guid(void);
uint64_t __wrap_spa_generate_load_guid(void);
uint64_t __wrap_spa_generate_load_guid(void) {{
  const uint64_t drawn = __real_spa_generate_load_guid();
  return getenv("{CONSTANT_LOAD_GUID}") == NULL ? drawn : 1;
}}

static uint64_t now_us(void) {{""",
)
_IN_DISKS = (
    "if (disk->page_is[page] == UNREAD) mark(disk, page, READ);",
    f'if (disk->page_is[page] == UNREAD && (page % 16 == 0 || getenv("{UNREPORTED_READS}") == NULL))'
    " mark(disk, page, READ);",
)
_IN_LINK = ("--wrap=vdev_disk_ops", "--wrap=vdev_disk_ops,--wrap=spa_generate_load_guid")


def changed_recipe(folder: Path) -> Recipe:
    """The recipe of the copy, whose sources are in this folder from now on."""
    recipe = recovery_recipe(zfs_version(DEFAULT))
    copies = {path: Path(shutil.copy(path, folder)) for path in (*recipe.programs, *recipe.stages)}
    _change(folder / "pool.c", *_IN_SOURCE)
    _change(folder / "disks.c", *_IN_DISKS)
    _change(folder / "stage.sh", *_IN_LINK)
    return replace(
        recipe,
        programs=tuple(copies[path] for path in recipe.programs),
        stages=tuple(copies[path] for path in recipe.stages),
    )


def build_native(folder: Path) -> Path:
    """Build the copy in an empty folder: some twenty seconds of a processor. Raises `HarnessError`."""
    sources, made = folder / "sources", folder / "made"
    for place in (sources, made):
        place.mkdir()
    copied = changed_recipe(sources)
    keep = os.open(os.devnull, os.O_RDONLY)
    try:
        log = folder / "build.log"
        build_base(copied, made, log=log, progress=lambda _step: None, stop=Event(), keep=keep)
    finally:
        os.close(keep)
    program = made / _PROGRAM
    with tarfile.open(made / "base.tar") as base:
        program.write_bytes(read_member(base, f"./{_PROGRAM}"))
    program.chmod(0o755)
    return program


def _change(file: Path, right: str, wrong: str) -> None:
    source = file.read_text()
    assert source.count(right) == 1, f"{file.name} has {right!r} {source.count(right)} times"
    file.write_text(source.replace(right, wrong))
