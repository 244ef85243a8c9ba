"""The files that a trial leaves for a replay: its survivors, and recordings packed and unpacked."""

from __future__ import annotations

import json
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from suites.selftest.unit.event_records import encode_event
from suites.selftest.unit.facts.shelf_logs import Log, explicit
from suites.selftest.unit.made_records import changed, trial_record
from torture.choices.matrix.cells import Cell, cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.folder import CHECK_STATE, CUT_STATE, RECORDINGS, SECOND_CUT_STATE
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    InFlight,
    Policy,
    write_crash_state,
)
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.model import keep_all
from torture.machines.nas.pool import pool_disks
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.specs import TrialSpec
from torture.trials.plan.trial_plan import LYING_MS, draw_disk_states, draw_plan
from torture.trials.replay.serve import WantedState, served
from torture.trials.trial.courses.replay_course import recovered_state, require_legal_view
from torture.trials.trial.shared.resident import archive_recordings, unpack_recordings

CORRUPTED = trial_record(
    trial="t", cell="c", axes={}, seed=1, verdict=Verdict.CORRUPTED, guarantee="loses", lost=3,
    reasons=("torn",),
)  # fmt: skip


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    life = tmp_path / "recordings" / "life-1"
    life.mkdir(parents=True)
    (life / "log").write_bytes(b"events")
    (life / "index").write_bytes(b"made again")
    return life.parent


def test_a_loss_can_be_unpacked_again_without_its_index(recordings: Path, tmp_path: Path) -> None:
    assert archive_recordings(CORRUPTED, of=recordings, into=tmp_path) == CORRUPTED
    unpack_recordings(tmp_path, tmp_path / "again")
    assert [path.name for path in (tmp_path / "again" / "life-1").iterdir()] == ["log"]


def test_an_intact_trial_leaves_nothing(recordings: Path, tmp_path: Path) -> None:
    archive_recordings(changed(CORRUPTED, verdict=Verdict.INTACT), of=recordings, into=tmp_path)
    with pytest.raises(HarnessError, match="--live"):
        unpack_recordings(tmp_path, tmp_path / "again")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(HarnessError, match=f"there is no folder {missing}"):
        unpack_recordings(missing, tmp_path / "again")


def test_an_undetected_planted_fault_keeps_its_evidence(recordings: Path, tmp_path: Path) -> None:
    missed = changed(CORRUPTED, verdict=Verdict.INTACT, fault="flush-dropped")
    archive_recordings(missed, of=recordings, into=tmp_path)
    unpack_recordings(tmp_path, tmp_path / "again")
    assert (tmp_path / "again" / "life-1" / "log").exists()


def test_without_room_the_verdict_stands_and_says_so(recordings: Path, tmp_path: Path) -> None:
    (tmp_path / RECORDINGS).symlink_to("/dev/full")
    record = archive_recordings(CORRUPTED, of=recordings, into=tmp_path)
    assert (record.verdict, record.lost) == (Verdict.CORRUPTED, 3)
    assert record.reasons[0] == "torn"
    assert "No space left" in record.reasons[1]
    assert not (tmp_path / RECORDINGS).is_symlink()


def test_any_wrong_byte_and_an_early_end_of_the_recordings_are_reported_with_the_next_step(
    recordings: Path, tmp_path: Path
) -> None:
    """A byte may name a method or an encoding, or say that it is encrypted."""
    (recordings / "life-1" / "log").write_bytes(b"events that are some" * 20)
    archive_recordings(CORRUPTED, of=recordings, into=tmp_path)
    whole = (tmp_path / RECORDINGS).read_bytes()
    (tmp_path / RECORDINGS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(HarnessError, match="cannot be unpacked"):
        unpack_recordings(tmp_path, tmp_path / "again")
    hints = []
    for place in range(len(whole)):
        damaged = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        (tmp_path / RECORDINGS).write_bytes(damaged)
        try:
            unpack_recordings(tmp_path, tmp_path / "again")
        except HarnessError as error:
            hints.append(error.hint)
    assert len(hints) > len(whole) / 4
    assert all("tools/replay --live" in hint for hint in hints)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (WantedState(cut=-1), "number from 0"),
        (WantedState(seed=-1), "number from 0"),
        (WantedState(seed=2**64), "number from 0"),
        (WantedState(after_check=True), f"has no {CHECK_STATE}: its trial ended before that"),
    ],
)
def test_a_state_that_no_number_names_or_that_its_trial_never_had_is_refused(
    wanted: WantedState, why: str, recordings: Path, tmp_path: Path
) -> None:
    state = CrashState(recording=recordings / "life-1", cut=3, seed=1, disks={})
    write_crash_state(recordings / CUT_STATE, state)
    archive_recordings(CORRUPTED, of=recordings, into=tmp_path)
    with pytest.raises(HarnessError, match=why), served(tmp_path, wanted):
        pass


@pytest.mark.parametrize(
    ("kept", "lived", "recovered"),
    [
        ((CUT_STATE,), False, CUT_STATE),
        ((CUT_STATE, CHECK_STATE), False, CUT_STATE),
        ((CUT_STATE, CHECK_STATE), True, CHECK_STATE),
        ((CUT_STATE, SECOND_CUT_STATE, CHECK_STATE), True, CHECK_STATE),
        ((CUT_STATE, SECOND_CUT_STATE), True, SECOND_CUT_STATE),
        ((CUT_STATE,), True, CUT_STATE),
    ],
)
def test_a_trial_that_ended_before_its_check_is_replayed_from_where_it_had_come(
    recordings: Path, kept: tuple[str, ...], lived: bool, recovered: str
) -> None:
    """A pool that no import brought back is never checked, and is what one wants to see again."""
    for name in kept:
        (recordings / name).touch()
    assert recovered_state(recordings, lived=lived) == recordings / recovered


@pytest.mark.parametrize("kept", [(1,), ()])
def test_a_confirmed_state_that_no_cut_leaves_is_not_recovered_again(
    kept: tuple[int, ...], tmp_path: Path
) -> None:
    """An older walk dropped a completed write of a protected disk."""
    log = Log()
    log.write()
    folder = tmp_path / "life-1"
    folder.mkdir()
    (folder / "log").write_bytes(b"".join(map(encode_event, log.events)))
    disk = {"name": "slog0", "size": 4096, "sector": 512}
    (folder / "shelf.json").write_text(json.dumps({"schema": 1, "disks": [disk]}))
    state = CrashState(recording=folder, cut=log.last, seed=0, disks={"slog0": explicit(*kept)})
    write_crash_state(tmp_path / CUT_STATE, state)
    disks = [ShelfDisk(serial="slog0", size_mib=1, persistence=Persistence.PLP)]
    with nullcontext() if kept else pytest.raises(HarnessError, match="protected disk"):
        require_legal_view(tmp_path / CUT_STATE, disks)


# The survivors that a trial draws for its disks, and how its recordings are kept and unpacked.

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


def test_nothing_is_unpacked_outside_of_its_folder(tmp_path: Path) -> None:
    """A recording may come from somebody else."""
    with zipfile.ZipFile(tmp_path / RECORDINGS, "w") as archive:
        archive.writestr("../escaped", b"x")
    unpack_recordings(tmp_path, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "escaped").exists()


def test_a_physical_sector_is_at_least_the_logical_one() -> None:
    with pytest.raises(ValueError, match="smaller than its logical one"):
        ShelfDisk(serial="d", size_mib=1, sector_bytes=4096)
