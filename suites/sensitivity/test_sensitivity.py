"""Planted faults must be seen by the predicted check; disturbances must not be seen.

Each is planted in a cell that is sound without it, or in that cell with the choices of `--axis`,
e.g. another transport. It has `--trials` times as many cuts as it is predicted to need. It fails its
test when no cut shows it, or when another check sees it than was predicted before its first run
(`torture/choices/experiments/`). A bug planted in ZFS itself is a version of ZFS, built on first use,
and its trials are a separate run.
"""

from __future__ import annotations

from collections.abc import Sequence

from fixtures.campaigns import Running
from fixtures.options import Options
from suites.sensitivity.conftest import RunAlone
from torture.choices.experiments.protocol import Fault
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.records.scoring.detection import Outcome, detect, seen_by
from torture.trials.plan.draw import cuts_of


def test_a_planted_fault_is_seen(
    fault: Fault, planted: Running, outcomes: list[Outcome], options: Options
) -> None:
    _must_be_as_predicted(fault, _records_of(fault, planted, options), outcomes)


def test_a_bug_planted_in_zfs_is_seen(
    zfs_bug: Fault, planted_alone: RunAlone, outcomes: list[Outcome]
) -> None:
    _must_be_as_predicted(zfs_bug, planted_alone(zfs_bug), outcomes)


def _must_be_as_predicted(
    fault: Fault, records: Sequence[TrialRecord], outcomes: list[Outcome]
) -> None:
    outcome = Outcome(experiment=fault, affected=detect(fault, records))
    outcomes.append(outcome)
    assert not outcome.objection, f"{fault.words}: {outcome.objection}"


def test_harmless_disturbances_are_not_detected(
    disturbance: Fault, planted: Running, options: Options
) -> None:
    _must_see_nothing(_records_of(disturbance, planted, options))


def test_a_harmless_change_of_zfs_is_not_detected(
    zfs_disturbance: Fault, planted_alone: RunAlone
) -> None:
    _must_see_nothing(planted_alone(zfs_disturbance))


def _must_see_nothing(records: Sequence[TrialRecord]) -> None:
    assert records
    for record in records:
        assert record.is_conclusive, record.error
        assert record.verdict is Verdict.INTACT, record.reasons
        assert not seen_by(record), record.cut.audit.findings


def _records_of(fault: Fault, planted: Running, options: Options) -> list[TrialRecord]:
    """The fault's records once its trials have ended; its cell may have those of other faults, too."""

    def records() -> list[TrialRecord]:
        return [record for record in planted.campaign.records if record.fault == fault.name]

    cell, cuts = Cell.parse(fault.cell), cuts_of(fault, trials=options.trials)
    planted.wait_for(cell, name=fault.name, is_enough=lambda: len(records()) >= cuts)
    return records()
