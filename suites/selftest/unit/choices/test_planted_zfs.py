"""Changes planted in OpenZFS: each is one changed line, a version of its own, and predicted."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.choices.experiments import (
    DISTURBANCES,
    FAULTS,
    KNOWN_BUGS,
    ZFS_BUGS,
    ZFS_DISTURBANCES,
    find,
)
from torture.choices.experiments.protocol import Fault
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.zfs.versions import DEFAULT, FIXES, PLANTED, UNFIXED, zfs_version
from torture.machines.images.recipes import read_recipe
from torture.machines.images.source_trees import choose_zfs
from torture.oracles.verdict.guarantee import Guarantee

PATCHES, FIXED, LESS = (sorted(folder.glob("*.patch")) for folder in (PLANTED, FIXES, UNFIXED))
ZFS_CHANGES = ZFS_BUGS | ZFS_DISTURBANCES


@pytest.mark.parametrize("change", ZFS_CHANGES.values(), ids=lambda change: change.name)
def test_a_change_is_one_line_of_one_file_beside_harmless_ones(change: Fault) -> None:
    patch = zfs_version(change.zfs).patch
    assert patch is not None
    assert sum(line.startswith("+++ b/module/") for line in patch.read_text().splitlines()) == 1
    others = [zfs_version(other.zfs).patch for other in ZFS_DISTURBANCES.values()]
    harmless = [line for other in others if other != patch for line in _changed_lines(other)]
    changed = [line for line in _changed_lines(patch) if line not in harmless]
    assert sum(line.startswith("-") for line in changed) == 1
    assert sum(line.startswith("+") for line in changed) <= 1


def _changed_lines(patch: Path | None) -> list[str]:
    assert patch is not None
    lines = patch.read_text().splitlines()
    signs = (line for line in lines if line.startswith(("+", "-")))
    return [line for line in signs if not line.startswith(("+++", "---"))]


@pytest.mark.parametrize("bug", ZFS_CHANGES.values(), ids=lambda bug: bug.name)
def test_a_change_is_a_version_and_nothing_else_is_planted_with_it(bug: Fault) -> None:
    version = zfs_version(bug.zfs)
    assert version.patch in PATCHES
    assert version.recipe == zfs_version(DEFAULT).recipe
    assert find(bug.name) is bug
    assert bug.name not in FAULTS | DISTURBANCES
    assert guarantee_of(Cell.parse(bug.cell)) is Guarantee.SAFE
    assert (bug.cuts >= 1) is not bug.is_harmless
    assert not any((bug.in_nas, bug.in_client, bug.spoiler))
    slow = find("log-write-slow")
    assert slow is not None
    assert slow.is_harmless
    assert bug.on_disks in (None, slow.on_disks)


def test_every_patch_is_a_fault_with_a_prediction() -> None:
    assert {zfs_version(bug.zfs).patch for bug in ZFS_CHANGES.values()} == set(PATCHES)


def test_every_fix_clears_a_known_bug_in_the_same_cell() -> None:
    sides = [bug for bug in KNOWN_BUGS.values() if "+" in bug.cleared.version]
    assert {zfs_version(bug.cleared.version).patch for bug in sides} == set(FIXED)
    for bug in sides:
        assert bug.affected.cell == bug.cleared.cell
        assert bug.affected.zfs == DEFAULT


def test_every_fix_that_is_taken_out_is_the_affected_side_of_a_known_bug() -> None:
    sides = [bug for bug in KNOWN_BUGS.values() if "+" in bug.affected.version]
    assert {zfs_version(bug.affected.version).patch for bug in sides} == set(LESS)
    for bug in sides:
        assert bug.affected.chosen_cell == bug.cleared.chosen_cell
        assert bug.cleared.zfs == DEFAULT


def test_a_patch_has_a_kernel_and_an_image_of_its_own() -> None:
    names = [DEFAULT, *(f"{DEFAULT}+{patch.stem}" for patch in (*PATCHES, *FIXED, *LESS))]
    recipes = [read_recipe("nas", zfs=name) for name in names]
    kernels = {recipe.kernel.base_key for recipe in recipes if recipe.kernel}
    assert len(kernels) == len(names)
    assert len({recipe.image_key for recipe in recipes}) == len(names)
    assert len({recipe.base_key for recipe in recipes}) == 1, "the tools are Debian's"
    clients = {read_recipe("client", zfs=name).image_key for name in names}
    assert len(clients) == 1, "a client has no planted bug"


@pytest.mark.parametrize(
    "name", [f"{DEFAULT}+", f"{DEFAULT}+unknown", "2.3.99+uberblock_not_flushed", f"{DEFAULT}+../x"]
)
def test_an_unknown_bug_is_refused(name: str) -> None:
    with pytest.raises(HarnessError, match="no recipe for ZFS"):
        choose_zfs(name)
