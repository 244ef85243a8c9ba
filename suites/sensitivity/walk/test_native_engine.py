"""Mistakes of the suite's own must show: a native engine that mixes up loads of a pool, or hides reads.

All states of a walk are the same pool, with the same blocks at the same places. ZFS's cache tells the
states apart by the GUID that it draws for each load. With a constant one it finds blocks of an earlier
state. The library notices that, and ends: the walk counts the state as given up, and the kernel's ZFS
decides about it. A right program comes to the same end whatever states it recovered before.

A state is proven by the places that a recovery has read. If reads are not reported, states are proven
that end with another content. A walk recovers some proven states all the same, and so sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.campaigns import run_alone
from fixtures.options import Options
from suites.sensitivity.walk.native_mutants import (
    CONSTANT_LOAD_GUID,
    UNREPORTED_READS,
    build_native,
)
from torture.choices.experiments import FAULTS
from torture.facts.evidence.folder import CUT_STATE
from torture.facts.recording.crash_state import CrashState, read_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Recording, load_recording
from torture.facts.zfs.versions import DEFAULT
from torture.features.walk.engines.engine import GaveUp, Recovered
from torture.features.walk.engines.native_engine import NativeEngine
from torture.features.walk.states.states import distinct_states, drawn
from torture.machines.images.source_trees import choose_zfs
from torture.machines.nas.pool import pool_disks
from torture.trials.plan.draw import draw_planted
from torture.trials.trial.shared.resident import unpack_recordings

_FAULT = "zil-nocacheflush"
"""A trial with any planted fault keeps its recording."""
_STATES = 40
"""Of 40 states the constant GUID ended 9, and of 60 it ended 13."""
_ALONE = 8
"""So many of them are also recovered by processes of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A recording, and crash states of it in the order of their cuts."""

    recording: Recording
    disks: tuple[ShelfDisk, ...]
    states: tuple[CrashState, ...]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes no mistake until a variable asks for it."""
    return build_native(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def recorded(
    pytestconfig: pytest.Config, options: Options, tmp_path_factory: pytest.TempPathFactory
) -> Recorded:
    """The states of one trial."""
    specs = draw_planted([FAULTS[_FAULT]], trials=1, run_seed=options.seed, load_ms=options.load_ms)
    run, (record,) = run_alone(pytestconfig, options, specs, choose_zfs(DEFAULT))
    recordings = tmp_path_factory.mktemp("recordings") / "of the cut"
    unpack_recordings(run.evidence / record.trial, recordings)
    cut = read_crash_state(recordings / CUT_STATE)
    recording, disks = load_recording(cut.recording), pool_disks(specs[0].cell)
    kinds = {disk.serial: disk.persistence for disk in disks}
    found = distinct_states(recording, kinds, first=cut.cut // 2, last=cut.cut, seed=1)
    chosen = sorted(drawn(found, _STATES, seed="native"), key=lambda state: state.cut)
    states = tuple(state.crash_state(recording, tuple(kinds)) for state in chosen)
    return Recorded(recording=recording, disks=disks, states=states)


def _ends(
    program: Path, recorded: Recorded, folder: Path, *, alone: bool = False
) -> list[Recovered | None]:
    """The end of each state; None: the process ended first. `alone`: each in another process."""
    engine = NativeEngine(program, recorded.recording, disks=recorded.disks, folder=folder)
    ends: list[Recovered | None] = []
    for state in recorded.states[: _ALONE if alone else None]:
        try:
            ends.append(engine.recover(state))
        except GaveUp:
            ends.append(None)
        if alone:
            engine.close()
    engine.close()
    return ends


def _differing(ends: list[Recovered | None], others: list[Recovered | None]) -> int:
    return sum(
        end is None or other is None or not end.is_like(other)
        for end, other in zip(ends, others, strict=False)
    )


def test_an_engine_that_knows_blocks_of_earlier_states_is_seen(
    program: Path, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = _ends(program, recorded, tmp_path / "right")
    assert None not in right
    assert _differing(right, _ends(program, recorded, tmp_path / "alone", alone=True)) == 0
    monkeypatch.setenv(CONSTANT_LOAD_GUID, "1")
    assert _differing(right, _ends(program, recorded, tmp_path / "wrong")) > 0


def _wrong_proofs(program: Path, recorded: Recorded, folder: Path) -> tuple[int, int]:
    """The number of states that earlier ones prove, and how many of them end otherwise all the same."""
    engine = NativeEngine(program, recorded.recording, disks=recorded.disks, folder=folder)
    proven = [(engine.proven(state), engine.recover(state)) for state in recorded.states]
    engine.close()
    proofs = [(proof, end) for proof, end in proven if proof is not None]
    return len(proofs), sum(not proof.is_like(end) for proof, end in proofs)


def test_an_engine_that_hides_reads_is_seen(
    program: Path, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, wrong = _wrong_proofs(program, recorded, tmp_path / "right")
    assert count > 0
    assert wrong == 0
    monkeypatch.setenv(UNREPORTED_READS, "1")
    assert _wrong_proofs(program, recorded, tmp_path / "wrong")[1] > 0
