"""Controls of the disks: what their caches lose is found, what they keep stays clean, both replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from torture.campaign.campaign import Campaign, EvidencePolicy
from torture.campaign.run import Run
from torture.evidence.cut_document import GONE
from torture.evidence.folder import RECORDINGS
from torture.lab.lab import LabSettings
from torture.lab.saved_states import warm_directory
from torture.matrix.cells import Cell
from torture.plan.draw import draw_trials
from torture.record.run_layout import LATEST, TRIALS_FILE
from torture.record.specs import Fault, TrialSpec
from torture.record.trials import Origin, TrialRecord, read_records
from torture.replay.replay import replay
from torture.schedules.fixed import FixedSchedule
from torture.scoring.score import score
from torture.verdict.verdicts import Verdict
from torture.workers.local import LocalSite
from torture.workers.protocol import WorkerOrders

_PLAIN = Cell.parse("iscsi-always-noslog-btrfs-bothdie")
_LYING = Cell.parse("iscsi-always-lying-btrfs-bothdie")
_LOST = Cell.parse("iscsi-always-lost-btrfs-bothdie")
_LEG_LOST = Cell.parse("iscsi-always-mirror-raidz1-btrfs-bothdie")
_DEADLINE_S = 400
_NO_FLUSH_TRIALS = 3
_LYING_TRIALS = 2
"""It lies about its last 700 ms only: one cut in fourteen found nothing acknowledged in them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """A campaign that has ended."""

    campaign: Campaign

    def records(self, cell: Cell) -> tuple[TrialRecord, ...]:
        records = self.campaign.records_of(cell)
        for record in records:
            assert record.error is None, record.error
        return records

    def first_loss(self, cell: Cell) -> TrialRecord:
        """The cell's first trial that lost something."""
        records = self.records(cell)
        lossy = [record for record in records if record.lost]
        assert lossy, [record.verdict for record in records]
        return min(lossy, key=lambda record: record.trial)

    def evidence(self, record: TrialRecord) -> Path:
        return self.campaign.run.evidence / record.trial


def _specs() -> list[TrialSpec]:
    def draw(cell: Cell, trials: int) -> tuple[TrialSpec, ...]:
        return draw_trials([cell], trials=trials, run_seed=1, load_ms=4000)

    faulty = [replace(spec, fault=Fault.NO_CACHE_FLUSH) for spec in draw(_PLAIN, _NO_FLUSH_TRIALS)]
    return [*faulty, *draw(_LYING, _LYING_TRIALS), *draw(_LOST, 1), *draw(_LEG_LOST, 1)]


@pytest.fixture(scope="module")
def played(vm_scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    lab = LabSettings(warm_states=warm_directory())
    scratch = vm_scratch / "shelf"
    scratch.mkdir()
    run = Run.begin(results=tmp_path_factory.mktemp("results"), seed=1, lab=lab, options={})
    campaign = Campaign(
        run=run,
        schedule=FixedSchedule(_specs()),
        site=LocalSite(WorkerOrders(scratch=scratch, evidence=run.evidence, lab=lab)),
        jobs=2,
        keep=EvidencePolicy.ALL,
    )
    campaign.start()
    try:
        for cell in (_PLAIN, _LYING, _LOST, _LEG_LOST):
            assert campaign.wait_for(cell, timeout_s=_DEADLINE_S), f"{cell.name} did not end"
        yield Played(campaign=campaign)
    finally:
        campaign.stop()


def unflushed(record: TrialRecord, serial: str) -> int:
    count = record.cut.disks[serial].unflushed
    assert count is not None
    return count


def test_a_pool_that_never_flushes_its_volatile_disks_is_seen_to_lose(played: Played) -> None:
    """`zfs_nocacheflush=1`: the same cell is safe without it, so the loss is the missing flushes'."""
    records = played.records(_PLAIN)
    assert len(records) == _NO_FLUSH_TRIALS
    for record in records:
        assert unflushed(record, "data0") > 0
    assert all(record.verdict.is_loss for record in records), [r.verdict for r in records]


def test_a_lying_log_device_loses_what_was_acknowledged(played: Played) -> None:
    record = played.first_loss(_LYING)
    assert record.verdict is Verdict.ROLLED_BACK
    assert unflushed(record, "slog0") > 0


def test_a_lost_log_device_rolls_back_and_needs_its_loss_accepted(played: Played) -> None:
    [record] = played.records(_LOST)
    assert record.verdict is Verdict.ROLLED_BACK
    assert "needed -m" in record.pool


def test_a_mirrored_log_that_lost_a_leg_over_volatile_disks_loses_nothing(played: Played) -> None:
    [record] = played.records(_LEG_LOST)
    assert record.verdict is Verdict.INTACT
    disks = record.cut.disks.values()
    assert sorted(disk.policy == GONE for disk in disks) == [False] * 4 + [True]
    assert "DEGRADED" in record.pool
    assert not (played.evidence(record) / RECORDINGS).exists()


def test_what_was_acknowledged_before_the_cut_is_counted_by_the_logs_numbers(
    played: Played,
) -> None:
    for record in played.campaign.records:
        cut = record.cut
        assert cut.acknowledged is not None
        assert 0 < cut.acknowledged <= record.acknowledged
        assert cut.log_seq is not None
        assert cut.marks is not None
        assert cut.log_seq > cut.marks > 0


@pytest.mark.parametrize("lossy", [_PLAIN, _LYING], ids=lambda cell: cell.slog)
def test_the_kept_file_gives_the_same_verdict_again(played: Played, lossy: Cell) -> None:
    first = played.first_loss(lossy)
    run = played.campaign.run.folder
    again, evidence = replay(played.evidence(first), results=run.parent, live=False)
    assert again.error is None
    assert (again.verdict, again.lost, again.found, again.rollback_ms) == (
        first.verdict, first.lost, first.found, first.rollback_ms,
    )  # fmt: skip
    assert again.verdicts == first.verdicts
    assert (again.origin, again.trial) == (Origin.REPLAY, f"{first.trial}.replay")
    assert again == score(evidence, timings=again.timings)
    assert (run.parent / LATEST).resolve() == run.resolve()
    assert read_records(evidence.parents[1] / TRIALS_FILE).records == (again,)
    assert first in read_records(run / TRIALS_FILE).records
