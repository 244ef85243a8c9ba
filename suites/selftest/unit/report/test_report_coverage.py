"""Intervals of cells cover the true rate, also where somebody merged runs until the result pleased."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.run_layout import RUN_FILE
from torture.report.figures.cell_figures import CellRates, cell_figures, cell_rates
from torture.report.reading.merged import write_merged
from torture.report.reading.store import Store
from torture.report.reading.tally import TrialKind

CELLS = [Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")]
CAMPAIGNS = 1500
LOST = TrialKind(Verdict.ROLLED_BACK, True, False)
INTACT = TrialKind(Verdict.INTACT, False, False)
EMPTY = TrialKind(Verdict.INCONCLUSIVE, False, False, True)


def rates_of(lost: int, of: int, *, is_sequential: bool) -> CellRates:
    counts = {LOST: lost, INTACT: of - lost, EMPTY: 3}
    return cell_rates("cell", guarantee="", counts=counts, is_sequential=is_sequential)


def campaign(rate: float, draw: random.Random, *, is_sequential: bool | None) -> CellRates:
    """Up to 12 runs of 12 cuts, merged until an interval is below or above the rate.

    That interval is of a fixed number, or (`is_sequential` is None) the one that the report shows.
    """
    lost = of = 0
    for runs in range(1, 13):
        lost += sum(draw.random() < rate for _ in range(12))
        of += 12
        is_of_several = is_sequential is None and runs > 1
        seen = rates_of(lost, of, is_sequential=is_of_several).harm
        if not seen.low <= rate <= seen.high:
            break
    return rates_of(
        lost, of, is_sequential=is_of_several if is_sequential is None else is_sequential
    )


def coverage(rate: float, *, is_sequential: bool | None) -> float:
    draw = random.Random(7)
    every = [campaign(rate, draw, is_sequential=is_sequential).harm for _ in range(CAMPAIGNS)]
    return sum(harm.low <= rate <= harm.high for harm in every) / CAMPAIGNS


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4])
def test_merging_until_the_result_pleases_still_covers(rate: float) -> None:
    assert coverage(rate, is_sequential=True) >= 0.95


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4])
def test_also_where_only_merged_runs_have_the_interval_for_any_stop(rate: float) -> None:
    """Who merges until the shown interval misses the rate, and knows the rate, gains little."""
    assert coverage(rate, is_sequential=None) >= 0.95


def test_intervals_of_fixed_numbers_would_not() -> None:
    assert coverage(0.4, is_sequential=False) < 0.95


def is_sequential(*runs: Path) -> set[bool]:
    with Store.open(runs) as store:
        return {figures.harm.is_sequential for figures in cell_figures(store.tallies())}


def test_trials_of_several_runs_or_of_an_unknown_one_have_the_interval_for_any_stop(
    tmp_path: Path,
) -> None:
    one, other = (
        write_run(tmp_path / str(seed), make_records(9, cells=CELLS, seed=seed), seed=seed)
        for seed in (1, 2)
    )
    assert is_sequential(one) == {False}
    assert is_sequential(one, other) == {True}
    with Store.open([one, other]) as store:
        merged = write_merged(store, tmp_path / "merged")
    assert is_sequential(merged) == {True}
    (one / RUN_FILE).unlink()
    assert is_sequential(one) == {True}


def test_shards_of_one_run_have_the_interval_of_a_fixed_number(tmp_path: Path) -> None:
    cells = [*CELLS, Cell.parse("iscsi-always-noslog-btrfs-bothdie")]
    shards = [
        write_run(tmp_path / cell.name, make_records(9, cells=[cell], seed=1)) for cell in cells
    ]
    assert is_sequential(*shards) == {False}
    with Store.open(shards) as store:
        merged = write_merged(store, tmp_path / "merged")
    assert is_sequential(merged) == {False}
