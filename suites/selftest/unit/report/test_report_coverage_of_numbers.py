"""Each number of the page holds in 95 of 100 campaigns: a part of the table in docs/statistics.md."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report import campaigns
from suites.selftest.unit.report.campaigns import Campaign, counted, play, tally_of, tries_of
from suites.selftest.unit.report.natures import (
    CELLS,
    Ending,
    Kind,
    Nature,
    guarantee_in,
    natures_of,
)
from suites.selftest.unit.report.page_coverage import fault_coverage, simulate
from suites.selftest.unit.report.page_numbers import Number, observed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.merged import write_merged
from torture.report.reading.store import Store
from torture.report.reading.tally import FirstTry, TrialKind

CAMPAIGNS = 40
FEWEST = 30
"""Fewer values say nothing about a share."""
EMPTY = CutDocument(audit=AuditDocument(under_way=0, acknowledged_lately=0))
LOSSY, SAFE = CELLS[-1], CELLS[0]


def missed(kind: Kind, campaigns: int) -> dict[Number, float]:
    """The numbers that hold too seldom, beyond three standard deviations of the simulation."""
    found = simulate(kind, campaigns).in_all
    assert {Number.SENTENCE, Number.GROUP, Number.WORST, Number.CHOICE, Number.COMPARED} <= set(
        found
    )
    return {
        number: share.share
        for number, share in found.items()
        if share.of >= FEWEST and share.share < 0.95 - 3 * (0.05 * 0.95 / share.of) ** 0.5
    }


@pytest.mark.parametrize("kind", Kind)
def test_each_number_holds_in_95_percent_of_campaigns(kind: Kind) -> None:
    assert not missed(kind, CAMPAIGNS if kind is not Kind.WIDE else FEWEST)


def test_a_number_would_not_hold_if_the_last_record_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaigns, "the_one_that_counts", lambda tries: tries[-1])
    monkeypatch.setattr(campaigns, "counted", counted.__wrapped__)
    assert Number.SENTENCE in missed(Kind.AGAIN, CAMPAIGNS)


def without_first_tries(campaign: Campaign) -> Campaign:
    """As if a trial's later try that counts were its only one."""
    tallies = []
    for tally in campaign.tallies:
        kinds: Counter[TrialKind] = Counter()
        for kind, count in tally.counts.items():
            kinds[kind._replace(first=None)] += count
        tallies.append(replace(tally, counts=kinds))
    return replace(campaign, tallies=tuple(tallies))


def test_intervals_that_know_no_first_tries_would_not_hold() -> None:
    """After a breach each trial is made again, and each new breach of a safe cell counts."""
    held: dict[bool, list[float]] = {True: [], False: []}
    for number in range(60):
        draw = np.random.default_rng((7, number))
        natures = natures_of(Kind.ALL_AGAIN, draw)[:1]
        one = replace(natures[0], harm=0.4)
        campaign = play(Kind.ALL_AGAIN, (one,), draw)
        for knows, seen in ((True, campaign), (False, without_first_tries(campaign))):
            shown = [own.share for own in observed(seen) if own.number is Number.SENTENCE]
            held[knows] += shown
    assert np.mean(held[True]) >= 0.9
    assert np.mean(held[False]) < 0.85


def test_the_interval_of_a_planted_fault_holds_although_misses_bring_further_cuts() -> None:
    interval, bound = fault_coverage()
    assert interval >= 0.95
    assert bound >= 0.95


def record_of(record: TrialRecord, ending: Ending, attempt: int) -> TrialRecord:
    """One try of a trial that ended so; tries differ by their times."""
    kind = ending.kind
    return changed(
        replace(record, timings={"load": 4000 + attempt}, cut=EMPTY if kind.is_empty else CutDocument()),
        verdict=kind.verdict,
        lost=3 if kind.is_loss else 0,
        acknowledged=9,
        rollback_ms=40.0 if kind.verdict is Verdict.ROLLED_BACK else None,
        error=None,
        pool=None,
    )  # fmt: skip


@pytest.mark.parametrize("of", [SAFE, LOSSY], ids=lambda of: str(of.name))
@pytest.mark.parametrize("is_all", [False, True])
def test_the_store_counts_the_records_of_a_campaign_as_the_simulation_does(
    of: Cell, is_all: bool, tmp_path: Path
) -> None:
    """Also those of a run that was merged from it, and written again."""
    nature = Nature(
        cell=of, harm=0.4, empty=0.15, harm_if_empty=0.1, failed=0.2, failed_if_harmed=0.3
    )
    drawn = np.random.default_rng(3).choice(len(nature.chances), size=(60, 3), p=nature.chances)
    runs: tuple[list[TrialRecord], list[TrialRecord]] = ([], [])
    expected: Counter[Ending] = Counter()
    records = make_records(len(drawn), cells=[nature.cell], seed=1)
    for record, row in zip(records, drawn.tolist(), strict=True):
        tries = tries_of([nature.endings[end] for end in row], is_all=is_all)
        for attempt, ending in enumerate(tries):
            runs[attempt > 0].append(record_of(record, ending, attempt))
        expected[counted(guarantee_in(nature.cell.name), *row, is_all=is_all)] += 1
    folders = [
        write_run(tmp_path / f"run{number}", made, begun=f"2026-11-2{number}T00:00:00+0000")
        for number, made in enumerate(runs)
    ]
    of_simulation = tally_of(nature.cell.name, tuple(expected.items()), is_sequential=False)
    with Store.open(folders) as store:
        [tally] = store.tallies()
        assert dict(tally.counts) == dict(of_simulation.counts)
        merged = write_merged(store, tmp_path / "merged")
        figures = cell_figures(store.tallies())
    with Store.open([merged]) as store:
        assert dict(store.tallies()[0].counts) == dict(of_simulation.counts)
        [again] = cell_figures(store.tallies())
    assert (again.harm.events, again.harm.later) == (figures[0].harm.events, figures[0].harm.later)
    assert bool(figures[0].harm.later) == is_all
    assert any(kind.first == FirstTry(False, False) for kind in tally.counts) == is_all
