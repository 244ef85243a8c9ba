"""Each number of the page holds in 95 of 100 campaigns, and each interval at any stop."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binom

from suites.benchmarks import campaigns
from suites.benchmarks.campaigns import (
    CELLS,
    Ending,
    Kind,
    Nature,
    counted,
    endings_of,
    tally_of,
    tries_of,
)
from suites.benchmarks.page_coverage import Number, simulate
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.stats.rates import in_words, printed_bounds, rate_of
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RUN_FILE
from torture.records.record.trials import TrialRecord
from torture.report.figures.cell_figures import CellRates, cell_figures, cell_rates
from torture.report.reading.store import Store, write_merged
from torture.report.reading.tally import TrialKind

CAMPAIGNS = 30
FEWEST = 30
"""Fewer values say nothing about a share."""
EMPTY = CutDocument(audit=AuditDocument(under_way=0, acknowledged_lately=0))


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
    assert not missed(kind, CAMPAIGNS)


def test_a_number_would_not_hold_if_the_last_record_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaigns, "the_one_that_counts", lambda tries: tries[-1])
    monkeypatch.setattr(campaigns, "counted", counted.__wrapped__)
    assert Number.SENTENCE in missed(Kind.AGAIN, 40)


def test_intervals_that_know_no_first_tries_would_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a breach each trial is made again, and each new breach of a safe cell counts."""

    def first_forgotten(*drawn: object, is_all: bool) -> Ending:
        ending = counted(*drawn, is_all=is_all)
        return ending._replace(kind=ending.kind._replace(first=None))

    monkeypatch.setattr(campaigns, "RATES", (0.4,))
    assert Number.SENTENCE not in missed(Kind.ALL_AGAIN, 60)
    monkeypatch.setattr(campaigns, "counted", first_forgotten)
    assert Number.SENTENCE in missed(Kind.ALL_AGAIN, 60)


def test_the_interval_of_a_planted_fault_holds_although_misses_bring_further_cuts() -> None:
    """Exactly, for 4 cuts, and 6 more if one of these missed it."""
    rates = np.linspace(0.005, 0.995, 199)
    missed = np.zeros_like(rates)
    for first, rest in product(range(5), range(7)):
        seen, cuts = (first, 4) if first == 4 else (first + rest, 10)
        likely = binom.pmf(first, 4, rates) * binom.pmf(rest, 6, rates)
        low, high = printed_bounds(rate_of(seen, cuts))
        missed += likely * ((rates < low) | (rates > high))
    assert 1 - missed.max() == pytest.approx(0.954, abs=0.0005)


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


@pytest.mark.parametrize("of", [CELLS[0], CELLS[-1]])
@pytest.mark.parametrize("is_all", [False, True])
def test_the_store_counts_the_records_of_a_campaign_as_the_simulation_does(
    of: str, is_all: bool, tmp_path: Path
) -> None:
    """Also those of a run that was merged from it, and written again."""
    chances = Nature(of, harm=0.4, is_related=True).chances
    drawn = np.random.default_rng(3).choice(len(chances), size=(60, 3), p=chances)
    runs: tuple[list[TrialRecord], list[TrialRecord]] = ([], [])
    expected: Counter[Ending] = Counter()
    records = make_records(len(drawn), cells=[Cell.parse(of)], seed=1)
    for record, row in zip(records, drawn.tolist(), strict=True):
        tries = tries_of([endings_of(of)[end] for end in row], is_all=is_all)
        for attempt, ending in enumerate(tries):
            runs[attempt > 0].append(record_of(record, ending, attempt))
        expected[counted(of, *row, is_all=is_all)] += 1
    folders = [
        write_run(tmp_path / f"run{number}", made, begun=f"2026-11-2{number}T00:00:00+0000")
        for number, made in enumerate(runs)
    ]
    of_simulation = dict(tally_of(of, tuple(expected.items())).counts)
    with Store.open(folders) as store:
        [tally] = store.tallies()
        assert dict(tally.counts) == of_simulation
        merged = write_merged(store, tmp_path / "merged")
    with Store.open([merged]) as store:
        assert dict(store.tallies()[0].counts) == of_simulation
    assert any(kind.first is not None for kind in of_simulation) == is_all


# Intervals of stopped runs cover the true rate whenever one stops; those of fixed numbers do not.

LOSSY = [Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")]
STOPPED_CAMPAIGNS = 1500
LOST = TrialKind(Verdict.ROLLED_BACK, True, False)
INTACT = TrialKind(Verdict.INTACT, False, False)
UNKNOWN = TrialKind(Verdict.INCONCLUSIVE, False, False, True)


def rates_of(lost: int, of: int, *, is_sequential: bool) -> CellRates:
    counts = {LOST: lost, INTACT: of - lost, UNKNOWN: 3}
    return cell_rates("cell", guarantee="", counts=counts, is_sequential=is_sequential)


def campaign(rate: float, draw: random.Random, *, is_sequential: bool) -> CellRates:
    """Up to 12 runs of 12 cuts, merged until the exact interval is below or above the rate."""
    lost = of = 0
    for _ in range(12):
        lost += sum(draw.random() < rate for _ in range(12))
        of += 12
        seen = rates_of(lost, of, is_sequential=False).harm
        if not seen.low <= rate <= seen.high:
            break
    return rates_of(lost, of, is_sequential=is_sequential)


def coverage(rate: float, *, is_sequential: bool) -> float:
    draw = random.Random(7)
    every = [
        campaign(rate, draw, is_sequential=is_sequential).harm for _ in range(STOPPED_CAMPAIGNS)
    ]
    return sum(harm.low <= rate <= harm.high for harm in every) / STOPPED_CAMPAIGNS


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4])
def test_the_interval_of_a_stopped_run_covers_at_any_stop(rate: float) -> None:
    assert coverage(rate, is_sequential=True) >= 0.95


def test_the_interval_of_a_fixed_number_would_not() -> None:
    """Whoever knows the rate, and merges until the interval misses it; docs/statistics.md says so."""
    assert 0.8 < coverage(0.4, is_sequential=False) < 0.9


def is_sequential(*runs: Path) -> set[bool]:
    with Store.open(runs) as store:
        return {figures.harm.is_sequential for figures in cell_figures(store.tallies())}


def test_a_stopped_or_unknown_run_has_the_wider_interval_and_several_runs_have_not(
    tmp_path: Path,
) -> None:
    one, other = (
        write_run(tmp_path / str(seed), make_records(9, cells=LOSSY, seed=seed), seed=seed)
        for seed in (1, 2)
    )
    assert is_sequential(one) == {False}
    assert is_sequential(one, other) == {False}
    with Store.open([one, other]) as store:
        merged = write_merged(store, tmp_path / "merged")
    assert is_sequential(merged) == {False}
    stopped = make_records(9, cells=LOSSY, seed=3)
    until = write_run(tmp_path / "3", stopped, seed=3, options={"until": "upper<0.01"})
    assert is_sequential(one, until) == {True}
    with Store.open([until]) as store:
        [cell] = cell_figures(store.tallies())
    assert in_words(cell.harm).endswith(" % for a stopped run]")
    (one / RUN_FILE).unlink()
    assert is_sequential(one) == {True}


def test_shards_of_one_run_have_the_interval_of_a_fixed_number(tmp_path: Path) -> None:
    cells = [*LOSSY, Cell.parse("iscsi-always-noslog-btrfs-bothdie")]
    shards = [
        write_run(tmp_path / cell.name, make_records(9, cells=[cell], seed=1)) for cell in cells
    ]
    assert is_sequential(*shards) == {False}
    with Store.open(shards) as store:
        merged = write_merged(store, tmp_path / "merged")
    assert is_sequential(merged) == {False}
