"""Controls of the disks: what their caches lose is found, what they keep stays clean, both replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.machinery.controls import (
    PLAIN,
    SAFE,
    UNSAFE,
    Controls,
    records_of,
)
from torture.choices.matrix.cells import SYNC, Cell
from torture.facts.axes.sync import Sync
from torture.records.record.run_document import LATEST, TRIALS_FILE
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import read_records
from torture.records.scoring.score import score
from torture.trials.campaign.campaign import Campaign
from torture.trials.replay.replay import replay


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """The controls of the disks."""

    campaign: Campaign

    def records(self, cell: Cell) -> tuple[TrialRecord, ...]:
        """Once they are there."""
        return records_of(self.campaign, cell)

    def evidence(self, record: TrialRecord) -> Path:
        return self.campaign.run.evidence / record.trial


@pytest.fixture
def played(controls: Controls) -> Played:
    return Played(campaign=controls.campaign)


def unflushed(record: TrialRecord, serial: str) -> int:
    count = record.cut.disks[serial].unflushed
    assert count is not None
    return count


def test_a_pool_that_never_flushes_its_volatile_disks_is_seen_to_lose(played: Played) -> None:
    """`zfs_nocacheflush=1`: the same cell is safe without it, so the loss is the missing flushes'."""
    [record] = played.records(PLAIN)
    assert unflushed(record, "data0") > 0
    findings = record.cut.audit.findings
    assert any(finding.startswith("acknowledged-is-durable") for finding in findings), findings
    assert record.verdict.is_loss


def test_the_audit_has_nothing_against_a_nas_that_flushes(played: Played) -> None:
    for cell in (SAFE, UNSAFE):
        for record in played.records(cell):
            audit = record.cut.audit
            assert (audit.broken, audit.findings) == (0, ())
            assert audit.acknowledgements
            assert bool(audit.completions) == (cell[SYNC] is not Sync.DISABLED)
            assert audit.took_ms is not None
            assert audit.took_ms < 1000


def test_acknowledgements_before_the_cut_are_counted_by_the_logs_numbers(
    played: Played,
) -> None:
    records = [record for cell in (PLAIN, SAFE, UNSAFE) for record in played.records(cell)]
    for record in records:
        cut = record.cut
        assert cut.acknowledged is not None
        assert 0 < cut.acknowledged <= record.acknowledged
        assert cut.log_seq is not None
        assert cut.marks is not None
        assert cut.log_seq > cut.marks > 0


def test_the_kept_file_gives_the_same_verdict_again(played: Played) -> None:
    [first] = played.records(PLAIN)
    run = played.campaign.run.folder
    again, evidence = replay(played.evidence(first), results=run.parent, live=False)
    assert again.error is None
    assert again.judgement.findings == first.judgement.findings
    assert again.judgement.parts == first.judgement.parts
    assert (again.origin, again.trial) == (Origin.REPLAY, f"{first.trial}.replay")
    assert again.where.host
    scored = score(evidence, timings=again.timings)
    assert again.engine_state == first.engine_state
    assert again == replace(
        scored, where=again.where, engine_state=again.engine_state, scored_s=again.scored_s
    )
    assert (run.parent / LATEST).resolve() == run.resolve()
    assert read_records(evidence.parents[1] / TRIALS_FILE).records == (again,)
    assert first in read_records(run / TRIALS_FILE).records
