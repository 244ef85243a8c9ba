"""Log devices that lie, or are gone after the cut: their losses are seen, and only theirs.

The seeds are fixed, as the outcome of each trial is known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.campaigns import Running, begun_beside
from fixtures.options import Options
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import GONE
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.trials.plan.draw import draw_trials

_LYING = Cell.parse("iscsi-always-lying-btrfs-bothdie")
_LOST = Cell.parse("iscsi-always-lost-btrfs-bothdie")
_LEG_LOST = Cell.parse("iscsi-always-mirror-raidz1-btrfs-bothdie")
_LOAD_MS = 2500
_LYING_TRIALS = 2
"""It lies about its last 700 ms only: cuts of any aim found nothing acknowledged in them at times."""
_ACKNOWLEDGED = 48
"""A run's seed whose first cuts of `_LYING` follow an acknowledgement at once."""


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, options: Options) -> Iterator[Running]:
    """The trials of the three cells."""
    lying = draw_trials([_LYING], trials=_LYING_TRIALS, run_seed=_ACKNOWLEDGED, load_ms=_LOAD_MS)
    others = draw_trials([_LOST, _LEG_LOST], trials=1, run_seed=1, load_ms=_LOAD_MS)
    specs = (*lying, *others)
    with begun_beside(request.config, options, specs) as running:
        yield running


def _records(running: Running, cell: Cell) -> tuple[TrialRecord, ...]:
    running.wait_for(cell)
    records = running.campaign.records_of(cell)
    for record in records:
        assert record.error is None, record.error
        audit = record.cut.audit
        assert (audit.broken, audit.findings) == (0, ()), "the NAS flushes, whatever its disks do"
        assert audit.acknowledgements
        assert audit.completions
    return records


def test_a_lying_log_device_loses_acknowledged_writes(running: Running) -> None:
    records = _records(running, _LYING)
    lossy = [record for record in records if record.lost]
    assert lossy, [record.verdict for record in records]
    assert lossy[0].verdict is Verdict.ROLLED_BACK
    unflushed = lossy[0].cut.disks["slog0"].unflushed
    assert unflushed is not None
    assert unflushed > 0


def test_a_lost_log_device_rolls_back_and_needs_its_loss_accepted(running: Running) -> None:
    [record] = _records(running, _LOST)
    assert record.verdict is Verdict.ROLLED_BACK
    assert "needed -m" in record.judgement.pool_summary


def test_a_mirrored_log_that_lost_a_leg_over_volatile_disks_loses_nothing(
    running: Running,
) -> None:
    [record] = _records(running, _LEG_LOST)
    assert record.verdict is Verdict.INTACT
    disks = record.cut.disks.values()
    assert sorted(disk.policy == GONE for disk in disks) == [False] * 4 + [True]
    assert "DEGRADED" in record.judgement.pool_summary
