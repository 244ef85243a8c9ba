"""Controls of a walk: the states of a safe recording are intact, those of an unsafe one are not."""

from __future__ import annotations

from suites.selftest.machinery.controls import (
    WALKED_SAFE,
    WALKED_STATES,
    WALKED_UNSAFE,
    Controls,
    records_of,
)
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.walk_document import WalkDocument, WalkEngine
from torture.machines.lab.lab import Boot
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Origin, TrialRecord


def _walked(controls: Controls, cell: Cell) -> tuple[TrialRecord, WalkDocument]:
    (record,) = records_of(controls.campaign(Boot.WARM), cell)
    assert record.origin is Origin.WALKED
    assert record.walk is not None, record.error
    assert record.walk.recovered == WALKED_STATES[cell] < record.walk.distinct
    assert record.walk.repeated >= 1
    assert (record.walk.differing, record.walk.fresh_differing) == (0, 0)
    assert 0 < record.walk.contents <= WALKED_STATES[cell]
    assert record.walk.seen_once <= record.walk.contents
    return record, record.walk


def test_each_state_of_a_safe_recording_is_intact(controls: Controls) -> None:
    record, walk = _walked(controls, WALKED_SAFE)
    assert walk.outcomes == {Verdict.INTACT: walk.recovered}, walk.unknown
    assert (record.verdict, walk.losses) == (Verdict.INTACT, ())


def test_power_goes_again_three_times_amid_the_recovery(controls: Controls) -> None:
    _, walk = _walked(controls, WALKED_SAFE)
    assert (walk.depth, walk.amid_recovery, walk.fresh) == (4, 12, 3)


def test_a_fresh_nas_shows_the_loss_of_an_unsafe_one(controls: Controls) -> None:
    """Without any dropped write: with sync=disabled the lost data were only in memory."""
    record, walk = _walked(controls, WALKED_UNSAFE)
    assert walk.states_lost > 0, walk.outcomes
    first = walk.losses[0]
    assert first.dropped == ()
    assert record.verdict == first.verdict
    assert (record.acknowledged, record.lost) == (first.acknowledged, first.lost)


def test_both_engines_recover_the_same_contents(controls: Controls) -> None:
    """The library on the host, and the kernel's ZFS in its NAS."""
    _, walk = _walked(controls, WALKED_SAFE)
    assert (walk.engine, walk.given_up) == (WalkEngine.BOTH, 0)
    assert walk.compared >= 5
    assert walk.disagreeing == 0
    assert walk.contents > 1, "equal contents show nothing"
