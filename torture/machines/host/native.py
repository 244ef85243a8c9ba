"""Builds the native parts: C++ sources to a shared object or a program, cached by a hash of its inputs.

Standard library only: set-up calls it before there is a virtual environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torture.files import CHECKOUT, locked, whole_file
from torture.machines.host.abilities import run_host
from torture.machines.host.scratch import own_cache_root

SHELF_SOURCES = CHECKOUT / "torture" / "machines" / "shelf" / "native"
SHELF_FLAGS = ("-O2",)

_PLUGIN = "nbdkit-shelf-plugin.so"
_COMPILER = "g++"
_STANDARD = ("-std=c++17", "-fPIC", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
_LIBRARIES = ("-ldeflate", "-lpthread")
_COMPILE_DEADLINE_S = 180
_BUILD_DEADLINE_S = 600
_BUILDS_MAX = 32
_OBJECTS_MAX = 128


def find_shelf_plugin(
    *, sources: Path = SHELF_SOURCES, flags: tuple[str, ...] = SHELF_FLAGS
) -> Path | None:
    """The shelf's nbdkit plugin built from these sources, or None when it is not built yet."""
    plugin = _place(sources, flags) / _PLUGIN
    if not plugin.exists():
        return None
    if os.access(plugin.parent, os.W_OK):
        os.utime(plugin.parent)
    return plugin


def shelf_plugin(*, sources: Path = SHELF_SOURCES, flags: tuple[str, ...] = SHELF_FLAGS) -> Path:
    """The same plugin, built if necessary; raises `HarnessError` with the compiler's words."""
    if (plugin := find_shelf_plugin(sources=sources, flags=flags)) is not None:
        return plugin
    return _built(_place(sources, flags) / _PLUGIN, lambda made: _build(sources, flags, made))


def preload_library(source: Path) -> Path:
    """A library of one source, to be preloaded into a program; built if necessary.

    Raises `HarnessError` with the compiler's words.
    """
    return _of_one_source(source, f"{source.stem}.so", "-shared", libraries=("-ldl",))


def native_program(source: Path) -> Path:
    """A program of one source, built if necessary; raises `HarnessError` with the compiler's words."""
    return _of_one_source(source, source.stem)


def _of_one_source(source: Path, name: str, *flags: str, libraries: tuple[str, ...] = ()) -> Path:
    folder = own_cache_root() / "native" / _digest([source], SHELF_FLAGS)
    argv = [_COMPILER, *_STANDARD, *SHELF_FLAGS, *flags, str(source), *libraries]
    result = _built(folder / name, lambda made: _compile([*argv, "-o", str(made)]))
    os.utime(folder)
    return result


def _built(result: Path, build: Callable[[Path], None]) -> Path:
    """A result in a folder of its own, which one process builds while others wait."""
    result.parent.mkdir(parents=True, exist_ok=True)
    with locked(result.parent / "lock", deadline_s=_BUILD_DEADLINE_S):
        if not result.exists():
            with whole_file(result, alone=True) as partial:
                build(partial)
            _remove_unused(result.parent.parent, _BUILDS_MAX)
    return result


def _place(sources: Path, flags: tuple[str, ...]) -> Path:
    return own_cache_root() / "native" / _digest(sorted(sources.glob("*.?pp")), flags)


def _digest(paths: list[Path], flags: tuple[str, ...]) -> str:
    digest = hashlib.sha256(" ".join([*_STANDARD, *flags]).encode())
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def _build(sources: Path, flags: tuple[str, ...], plugin: Path) -> None:
    headers = sorted(sources.glob("*.hpp"))
    kept = own_cache_root() / "native-objects"
    kept.mkdir(exist_ok=True)

    def made(unit: Path) -> Path:
        """The unit's object: a variant that differs in one unit compiles only that unit."""
        out = kept / f"{unit.stem}-{_digest([unit, *headers], flags)}.o"
        if out.exists():
            os.utime(out)
        else:
            with whole_file(out) as partial:
                _compile([_COMPILER, *_STANDARD, *flags, "-c", str(unit), "-o", str(partial)])
        return out

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        objects = list(pool.map(made, sorted(sources.glob("*.cpp"))))
    _compile([_COMPILER, "-shared", *flags, *map(str, objects), "-o", str(plugin), *_LIBRARIES])
    _remove_unused(kept, _OBJECTS_MAX)


def _compile(argv: list[str]) -> None:
    run_host(*argv, deadline_s=_COMPILE_DEADLINE_S, hint="tools/run --setup-only")


def _remove_unused(kept: Path, kept_max: int) -> None:
    """Keep the results used last; each edit and each checked variant makes one."""
    by_use = sorted(kept.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_use[kept_max:]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
