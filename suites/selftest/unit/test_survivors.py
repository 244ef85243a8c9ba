"""What a trial draws for its disks, and how its recordings are kept and unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from torture.axes.sweeps import Matrix
from torture.errors import HarnessError
from torture.evidence.folder import RECORDINGS
from torture.matrix.cells import Cell, cells_of
from torture.nas.pool import pool_disks
from torture.nas.slog import gone_at_cut
from torture.plan.survivors import LYING_MS, draw_crash_state, everything
from torture.recording.crash_state import Policy
from torture.recording.disks import Persistence, ShelfDisk
from torture.trial.archive import unpack_recordings

_SEEDS = range(200)
_RECORDING = Path("life-1")


def _policies(persistence: Persistence) -> set[Policy]:
    disk = ShelfDisk(serial="d", size_mib=1, persistence=persistence)
    views = (
        draw_crash_state(_RECORDING, cut=9, disks=[disk], gone=frozenset(), seed=seed)
        for seed in _SEEDS
    )
    return {view.disks["d"].policy for view in views}


def test_each_persistence_draws_from_its_own_policies() -> None:
    assert _policies(Persistence.PLP) == {Policy.ALL}
    assert _policies(Persistence.LYING) == {Policy.LYING}
    assert _policies(Persistence.VOLATILE) == {Policy.FLUSHED, Policy.SUBSET, Policy.TORN}


def test_disks_draw_apart_from_each_other() -> None:
    """A cache that always lost the same as its mirror's other leg would hide what a mirror heals."""
    disks = pool_disks(Cell.parse("iscsi-always-noslog-mirrored-btrfs-bothdie"))
    drawn = {
        tuple(view.disks[disk.serial].policy for disk in disks)
        for seed in _SEEDS
        for view in [draw_crash_state(_RECORDING, cut=9, disks=disks, gone=frozenset(), seed=seed)]
    }
    assert len(drawn) == 9


@pytest.mark.parametrize("any_cell", cells_of(Matrix.FULL), ids=lambda cell: cell.name)
def test_a_view_has_every_disk_that_is_left_and_the_same_seed_draws_it_again(
    any_cell: Cell,
) -> None:
    disks = pool_disks(any_cell)
    gone = gone_at_cut(any_cell, 5)
    view = draw_crash_state(_RECORDING, cut=9, disks=disks, gone=gone, seed=5)
    assert set(view.disks) | gone == {disk.serial for disk in disks}
    assert not set(view.disks) & gone
    assert view == draw_crash_state(_RECORDING, cut=9, disks=disks, gone=gone, seed=5)
    for disk in view.disks.values():
        assert disk.lying_ms == (LYING_MS if disk.policy is Policy.LYING else None)


def test_the_view_of_a_moment_keeps_everything() -> None:
    disks = pool_disks(Cell.parse("iscsi-always-lying-lyingdisks-btrfs-bothdie"))
    view = everything(_RECORDING, cut=3, disks=disks)
    assert {disk.policy for disk in view.disks.values()} == {Policy.ALL}


def test_recordings_that_are_not_there_or_harmed_are_told_with_the_next_step(
    tmp_path: Path,
) -> None:
    with pytest.raises(HarnessError, match="--live"):
        unpack_recordings(tmp_path, tmp_path / "out")
    with zipfile.ZipFile(tmp_path / RECORDINGS, "w") as archive:
        archive.writestr("life-1/log", b"x" * 4096)
    whole = (tmp_path / RECORDINGS).read_bytes()
    (tmp_path / RECORDINGS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(HarnessError, match="cannot be unpacked"):
        unpack_recordings(tmp_path, tmp_path / "out")


def test_nothing_is_unpacked_outside_of_its_folder(tmp_path: Path) -> None:
    """A recording may come from somebody else."""
    with zipfile.ZipFile(tmp_path / RECORDINGS, "w") as archive:
        archive.writestr("../escaped", b"x")
    unpack_recordings(tmp_path, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "escaped").exists()
