"""Planted faults must be seen by the predicted check; disturbances must not be seen.

Each is planted in a cell that is sound without it, or in that cell with the choices of `--axis`,
e.g. another transport. `--trials` sets the number of cuts for each. A fault fails its test when no
cut shows it, or when another check sees it than was predicted before its first run
(`torture/choices/faults/`). A bug planted in ZFS itself is a version of ZFS, built on first use,
and its trials are a separate run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from fixtures.options import Options
from suites.sensitivity.conftest import RunAlone
from torture.choices.faults.protocol import Fault
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.records.scoring.detection import Detection, detect, seen_by
from torture.trials.campaign.campaign import Campaign
from torture.trials.campaign.progress import Progress

_POLL_S = 1.0


def test_a_planted_fault_is_seen(
    fault: Fault,
    planted: Campaign,
    watched: Progress,
    detections: list[Detection],
    options: Options,
) -> None:
    with watched.shown():
        records = _records_of(fault, planted, watched, trials=options.trials)
    _must_be_as_predicted(fault, records, detections)


def test_a_bug_planted_in_zfs_is_seen(
    zfs_bug: Fault, planted_alone: RunAlone, detections: list[Detection]
) -> None:
    _must_be_as_predicted(zfs_bug, planted_alone(zfs_bug), detections)


def _must_be_as_predicted(
    fault: Fault, records: Sequence[TrialRecord], detections: list[Detection]
) -> None:
    detection = detect(fault, records)
    detections.append(detection)
    assert detection.detected, f"{fault.words}: not seen in {detection.cuts} cuts"
    assert detection.is_as_predicted, f"seen by {dict(detection.by)}, {detection.rate_in_words}"


def test_nothing_is_seen_of_what_is_harmless(
    disturbance: Fault, planted: Campaign, watched: Progress, options: Options
) -> None:
    with watched.shown():
        records = _records_of(disturbance, planted, watched, trials=options.trials)
    for record in records:
        assert record.is_conclusive, record.error
        assert record.verdict is Verdict.INTACT, record.reasons
        assert not seen_by(record), record.cut.audit.findings


def _records_of(
    fault: Fault, campaign: Campaign, watched: Progress, *, trials: int
) -> list[TrialRecord]:
    """The fault's records once its trials have ended."""
    end = time.monotonic() + campaign.patience_s
    cell = Cell.parse(fault.cell)
    while time.monotonic() < end:
        watched.beat()
        try:
            is_over = campaign.wait_for(cell, timeout_s=_POLL_S)
        except HarnessError as error:
            pytest.fail(f"the run cannot go on: {error}", pytrace=False)
        records = [record for record in campaign.records if record.fault == fault.name]
        if is_over or len(records) >= trials:
            return records
    pytest.fail(f"the trials of {fault.name} did not end", pytrace=False)
