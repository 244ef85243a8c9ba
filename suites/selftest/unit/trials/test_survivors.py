"""The survivors that a trial draws for its disks, and how its recordings are kept and unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from torture.choices.matrix.cells import Cell, cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.folder import RECORDINGS
from torture.facts.recording.accounting import keep_all
from torture.facts.recording.crash_state import DiskState, InFlight, Policy
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.machines.nas.pool import pool_disks
from torture.records.record.specs import TrialSpec
from torture.trials.plan.survivors import LYING_MS, draw_disk_states
from torture.trials.plan.trial_plan import draw_plan
from torture.trials.trial.shared.archive import unpack_recordings

_SEEDS = range(200)
_RECORDING = Path("life-1")


def _policies(persistence: Persistence, draw: int = 3) -> set[Policy]:
    disk = ShelfDisk(serial="d", size_mib=1, persistence=persistence)
    return {draw_disk_states([disk], seed=seed, draw=draw)["d"].policy for seed in _SEEDS}


def test_each_persistence_draws_from_its_own_policies() -> None:
    assert _policies(Persistence.PLP) == {Policy.ALL}
    of_any_cache = {Policy.SUBSET, Policy.TORN, Policy.PREFIX, Policy.OLDEST, Policy.BUT_FEW}
    assert _policies(Persistence.LYING) == {Policy.LYING} | of_any_cache
    assert _policies(Persistence.VOLATILE) == {Policy.FLUSHED} | of_any_cache
    first = {Policy.SUBSET, Policy.TORN}
    assert _policies(Persistence.LYING, draw=1) == {Policy.LYING} | first
    assert _policies(Persistence.VOLATILE, draw=1) == {Policy.FLUSHED} | first


def test_a_cache_holds_no_more_than_is_drawn_for_it() -> None:
    """Without a bound all that was ever written and not flushed would be open to loss."""
    disks = {kept: ShelfDisk(serial="d", size_mib=1, persistence=kept) for kept in Persistence}

    def states(kept: Persistence, draw: int) -> list[DiskState]:
        return [draw_disk_states([disks[kept]], seed=seed, draw=draw)["d"] for seed in _SEEDS]

    for kept in Persistence:
        assert {(state.held_ms, state.held_bytes) for state in states(kept, 1)} == {(None, None)}
    assert {state.held_ms for state in states(Persistence.PLP, 3)} == {None}
    lying_ms = [state.held_ms or 0 for state in states(Persistence.LYING, 3)]
    assert min(lying_ms) == LYING_MS
    drawn = states(Persistence.VOLATILE, 3)
    for of_each in ([s.held_ms or 0 for s in drawn], [s.held_bytes or 0 for s in drawn]):
        assert max(of_each) > 50 * min(of_each) > 0


@pytest.mark.parametrize("persistence", Persistence)
def test_writes_in_flight_survive_wholly_in_part_or_not_on_any_disk(
    persistence: Persistence,
) -> None:
    disk = ShelfDisk(serial="d", size_mib=1, persistence=persistence)
    states = [draw_disk_states([disk], seed=seed, draw=3)["d"] for seed in _SEEDS]
    drawn = [
        state.in_flight for state in states if state.policy not in (Policy.TORN, Policy.PREFIX)
    ]
    for fate in InFlight:
        # four standard deviations of 60 draws at 1/3
        assert drawn.count(fate) / len(drawn) == pytest.approx(1 / 3, abs=0.25)


def test_disks_draw_apart_from_each_other() -> None:
    """A cache that always lost the same as its mirror's other leg would hide what a mirror heals."""
    disks = pool_disks(Cell.parse("iscsi-always-noslog-mirrored-btrfs-bothdie"))
    drawn = set()
    for seed in _SEEDS:
        states = draw_disk_states(disks, seed=seed, draw=3)
        drawn.add(tuple(states[disk.serial].policy for disk in disks))
    assert len(drawn) > 25


@pytest.mark.parametrize("any_cell", cells_of(Matrix.FULL), ids=lambda cell: cell.name)
def test_a_plan_has_every_disk_that_is_left_and_the_same_seed_draws_it_again(
    any_cell: Cell,
) -> None:
    spec = TrialSpec(cell=any_cell, index=0, seed=5, load_ms=1000)
    plan = draw_plan(spec)
    assert set(plan.survivors) | plan.gone == {disk.serial for disk in pool_disks(any_cell)}
    assert not set(plan.survivors) & plan.gone
    assert plan == draw_plan(spec)
    lying = {
        disk.serial: LYING_MS if disk.persistence is Persistence.LYING else None
        for disk in pool_disks(any_cell)
    }
    for serial, state in plan.survivors.items():
        assert state.lying_ms == lying[serial]


def test_the_crash_state_of_a_moment_keeps_everything() -> None:
    disks = pool_disks(Cell.parse("iscsi-always-lying-lyingdisks-btrfs-bothdie"))
    state = keep_all(_RECORDING, cut=3, disks=disks)
    assert {disk.policy for disk in state.disks.values()} == {Policy.ALL}


def test_missing_or_damaged_recordings_are_reported_with_the_next_step(
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


def test_a_physical_sector_is_at_least_the_logical_one() -> None:
    with pytest.raises(ValueError, match="smaller than its logical one"):
        ShelfDisk(serial="d", size_mib=1, sector_bytes=4096)
