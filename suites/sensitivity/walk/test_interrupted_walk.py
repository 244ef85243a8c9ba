"""A NAS that dies amid a walk without a fault of its own, and power that goes again amid a recovery.

The states before the end of the NAS stand, with the reason. A walk recovers the states amid a
recovery, too, and nothing is lost. The seed is fixed, as the outcome is known beforehand.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from fixtures.campaigns import Running, begun_beside
from fixtures.options import Options
from suites.selftest.runs.processes import commands_in, sandboxes_of
from torture.choices.matrix.cells import Cell
from torture.deadlines import wait_for
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.features.walk.draws import draw_walked
from torture.features.walk.tasks import Walk
from torture.oracles.verdict.guarantee import Verdict
from torture.trials.campaign.campaign import Campaign

_CELL = Cell.parse("iscsi-always-noslog-throughput-raw-bothdie")
"""Its log has the addresses of blocks, and no data, so that no state has a torn sector."""
_STATES = 60
_STATES_OF_RECOVERY = 10
"""Of ten states three are of cuts amid the recovery."""
_SHOWN = 10
"""The live line shows one state in so many."""
_LOAD_MS = 2500
_DEADLINE_S = 300
_QEMU = "qemu-system-x86"
_NAS = b"guest=nas,"


def _walking(
    request: pytest.FixtureRequest, options: Options, walk: Walk
) -> AbstractContextManager[Running]:
    """A walk of one recording."""
    specs = draw_walked([_CELL], recordings=1, walk=walk, run_seed=1, load_ms=_LOAD_MS)
    return begun_beside(request.config, options, specs)


def test_a_killed_nas_ends_the_walk_and_keeps_its_states(
    request: pytest.FixtureRequest, options: Options
) -> None:
    with _walking(request, options, Walk(states=_STATES)) as running:
        campaign = running.campaign
        os.kill(
            wait_for(lambda: _walking_nas(campaign), what="walk", deadline_s=_DEADLINE_S),
            signal.SIGKILL,
        )
        running.wait_for(_CELL)
        (record,) = campaign.records_of(_CELL)
    assert record.verdict is Verdict.INCONCLUSIVE, "the states after it are unknown"
    walk = record.part(WalkDocument)
    assert walk is not None
    assert _SHOWN <= walk.counted < _STATES
    assert walk.outcomes == {Verdict.INTACT: walk.counted}
    why = "nas stopped by itself: its QEMU is gone"
    assert record.error == f"the walk broke off after {walk.counted} states: {why}"


def _walking_nas(campaign: Campaign) -> int | None:
    """The emulator of the NAS that recovers states, once it has recovered some."""
    stages = [state.stage for state in campaign.states.values()]
    if not any(stage.startswith("walk ") and stage != "walk 0" for stage in stages):
        return None
    for pid, program in commands_in(sandboxes_of(os.getpid())).items():
        if program == _QEMU and _NAS in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


@pytest.fixture(scope="module")
def walk(request: pytest.FixtureRequest, options: Options) -> Iterator[WalkDocument]:
    """The walk of one recording."""
    task = Walk(states=_STATES_OF_RECOVERY, engine=WalkEngine.NATIVE)
    with _walking(request, options, task) as running:
        running.wait_for(_CELL)
        (record,) = running.campaign.records_of(_CELL)
        assert record.error is None, record.error
        walk = record.part(WalkDocument)
        assert walk is not None
        assert record.verdict is Verdict.INTACT, record.reasons
        yield walk


def test_each_state_of_a_safe_recording_is_intact(walk: WalkDocument) -> None:
    assert walk.outcomes == {Verdict.INTACT: _STATES_OF_RECOVERY}, walk.unknown
    assert walk.losses == ()
    assert (walk.differing, walk.proofs_differing, walk.fresh_differing) == (0, 0, 0)


def test_power_goes_again_three_times_amid_the_recovery(walk: WalkDocument) -> None:
    assert (walk.depth, walk.amid_recovery, walk.fresh) == (4, 3, 3)
