"""The programs of a walk, without a build: one base for each version of ZFS, and each planted bug."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from suites.sensitivity.walk.native_mutants import changed_recipe
from torture.errors import HarnessError
from torture.facts.zfs.versions import DEFAULT, FOLDER, version_names, zfs_version
from torture.features.walk.engines import recovery_programs
from torture.features.walk.engines.recovery_programs import (
    guest_program,
    host_program,
    recovery_recipe,
)
from torture.machines.images.cache import Cache
from torture.machines.images.recipes import read_kernel_recipe

_BUG = f"{DEFAULT}+log_not_claimed"
_OF_TREE = "2.4.99-0123456789ab"
_RELEASE = "2.3.9-0+deb13u1"


def test_an_edit_of_the_program_builds_no_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zfs = zfs_version(DEFAULT)
    key, kernel_key = recovery_recipe(zfs).base_key, read_kernel_recipe(zfs).base_key
    for path in recovery_programs._SOURCES.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(recovery_programs, "_SOURCES", tmp_path)
    assert recovery_recipe(zfs).base_key == key
    (tmp_path / "pool.c").write_text("")
    assert recovery_recipe(zfs).base_key != key
    assert read_kernel_recipe(zfs).base_key == kernel_key


def test_each_version_and_each_bug_has_programs_of_its_own() -> None:
    names = [*version_names(), _BUG, f"{DEFAULT}+frees_not_deferred", _OF_TREE]
    recipes = [recovery_recipe(zfs_version(name)) for name in names]
    assert len({recipe.base_key for recipe in recipes}) == len(names)
    for recipe in recipes:
        assert all(path.exists() for path in (*recipe.stages, *recipe.programs))
        assert recipe.stages[-1].name == "stage.sh"


def test_each_program_is_compiled() -> None:
    named = {path.name for path in recovery_recipe(zfs_version(DEFAULT)).programs}
    there = {path.name for path in (FOLDER / "recovery").iterdir() if path.suffix in (".c", ".h")}
    assert named == there


def test_a_bug_is_planted_in_the_library_too() -> None:
    recipe = recovery_recipe(zfs_version(_BUG))
    assert recipe.patch == zfs_version(_BUG).patch
    assert len(recipe.stages) == 3


def test_a_tree_is_built_from_its_source() -> None:
    recipe = recovery_recipe(zfs_version(_OF_TREE))
    assert recipe.source == _OF_TREE
    assert "libzfslinux-dev" not in recipe.packages


@pytest.mark.parametrize("name", ["2.0.7-0123456789ab", "2.5.0-0123456789ab"])
def test_a_version_with_other_headers_is_not_walked(name: str) -> None:
    with pytest.raises(HarnessError, match="not written for") as refused:
        recovery_recipe(zfs_version(name))
    assert "since 2.1 and before 2.5" in refused.value.hint


Build = Callable[..., None]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Leaves a base as a build does, with these programs, in a cache of the test's own."""
    monkeypatch.setattr(recovery_programs, "Cache", lambda: Cache(tmp_path))
    nas = SimpleNamespace(manifest={"zfs": _RELEASE})
    monkeypatch.setattr(recovery_programs, "find", lambda _name, zfs, linux: nas if zfs else linux)

    def leave(name: str, *programs: str, library: str = _RELEASE) -> None:
        slot = recovery_programs._slot(recovery_recipe(zfs_version(name)))
        place = Cache(tmp_path).place("bases", slot)
        place.mkdir(parents=True)
        with tarfile.open(place / "base.tar", "w") as tar:
            for program in programs:
                info = tarfile.TarInfo(f"./{program}")
                info.size = len(program)
                tar.addfile(info, io.BytesIO(program.encode()))
        recovery_programs._unpack(place)
        (place / "packages.json").write_text(json.dumps({"libzfslinux-dev": library}))

    return leave


def test_the_nas_and_the_host_have_a_program_each(build: Build) -> None:
    build(DEFAULT, "recover", "native-recover")
    zfs = zfs_version(DEFAULT)
    assert guest_program(zfs) == b"recover"
    assert host_program(zfs).read_text() == "native-recover"


def test_a_bug_outside_of_the_library_is_walked_by_the_kernel_alone(build: Build) -> None:
    build(_BUG, "recover")
    assert guest_program(zfs_version(_BUG)) == b"recover"
    with pytest.raises(HarnessError, match="has not the bug"):
        host_program(zfs_version(_BUG))


def test_a_build_without_the_programs_is_refused(build: Build) -> None:
    with pytest.raises(HarnessError, match=r"has no .\./recover"):
        build(DEFAULT)


def test_programs_of_another_release_are_not_those_of_the_nas(build: Build) -> None:
    build(DEFAULT, "recover", "native-recover", library="2.3.8-1")
    with pytest.raises(HarnessError, match=r"have ZFS 2\.3\.8-1, the NAS 2\.3\.9"):
        guest_program(zfs_version(DEFAULT))


def test_the_mistakes_of_its_sensitivity_still_find_their_places_in_the_sources(
    tmp_path: Path,
) -> None:
    """Their own test builds the program, which no selftest has the time for."""
    recipe = changed_recipe(tmp_path)
    assert {path.parent for path in (*recipe.programs, *recipe.stages)} == {tmp_path}
