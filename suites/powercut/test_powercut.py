"""Live power cuts: every selected cell's trials, and whether each keeps its cell's guarantee."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures.campaigns import Running
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import TrialRecord, needing_attention
from torture.records.scoring.detection import too_safe_in_words
from torture.records.scoring.explanation import breaches_in_words
from torture.trials.campaign.campaign import Campaign


def test_cell_keeps_its_guarantee(
    cell: Cell,
    running: Running,
    record_property: Callable[[str, object], None],
) -> None:
    """Fails when a trial is worse than guaranteed, or broken off, or when no cut says anything.

    Fails, too, when a cell that must lose does not.
    """
    running.wait_for(cell)
    campaign = running.campaign
    records = campaign.records_of(cell)
    for verdict in Verdict:
        record_property(verdict, sum(record.verdict is verdict for record in records))
    guarantee = guarantee_of(cell)
    broken = [record for record in records if record.breaks(guarantee)]
    complaints = [_broken(record, guarantee, campaign) for record in broken]
    complaints += [
        f"{record.trial} is inconclusive, in {campaign.run.folder}:\n  {record.error}"
        for record in needing_attention(records)
    ]
    if too_safe := too_safe_in_words(records):
        complaints.append(too_safe)
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)


def _broken(record: TrialRecord, guarantee: Guarantee, campaign: Campaign) -> str:
    evidence = campaign.run.evidence / record.trial
    breaches = "\n  ".join(breaches_in_words(record, guarantee))
    return (
        f"{record.cell} breaks its guarantee, {guarantee}:\n"
        f"  {breaches}\n"
        f"  seed: {record.seed}\n"
        f"  why: {'; '.join((*record.reasons, *record.cut.audit.findings))}\n"
        f"  evidence: {evidence}\n"
        f"  again: tools/replay {evidence}"
    )
