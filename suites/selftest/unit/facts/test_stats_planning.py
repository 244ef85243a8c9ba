"""Sample sizes, and the host's speed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy

from suites.benchmarks.versus_power import FAMILIES, Family, predicted, simulate
from suites.selftest.unit.facts.measured_runs import make_run
from torture.facts.stats.planning import (
    cuts_below,
    cuts_of_fixed_size,
    cuts_to_detect,
    plan_until,
    plan_versus,
)
from torture.facts.stats.power import cuts_to_distinguish, power
from torture.facts.stats.rates import printed_bounds, rate_of
from torture.facts.stats.sequential import Until
from torture.trials.campaign.speed import Speed, measured_speed


@pytest.mark.parametrize("losses", [0, 1, 2, 3])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3, 0.77])
def test_one_cut_fewer_would_not_do(rate: float, losses: int) -> None:
    cuts = cuts_below(rate, losses)
    assert printed_bounds(rate_of(losses, cuts))[1] <= rate
    assert printed_bounds(rate_of(losses, cuts - 1))[1] > rate


def test_known_sample_sizes() -> None:
    assert [cuts_below(0.01, losses) for losses in range(4)] == [368, 555, 720, 874]
    assert cuts_below(0.01, 0, confidence=0.99) == 528
    assert cuts_to_detect(0.01, probability=0.95) == 299
    assert cuts_to_detect(0.5, probability=0.5) == 1
    assert cuts_of_fixed_size(Until.parse("upper<0.01")) == 368
    assert cuts_of_fixed_size(Until.parse("lower>0.99")) == 368


def test_seeing_a_loss_takes_no_fewer() -> None:
    for rate in (0.001, 0.03, 0.2, 0.9):
        cuts = cuts_to_detect(rate, probability=0.95)
        assert 1 - (1 - rate) ** cuts >= 0.95
        assert cuts == 1 or 1 - (1 - rate) ** (cuts - 1) < 0.95


@pytest.mark.parametrize(
    ("cuts", "rate", "other"), [(12, 0.1, 0.7), (25, 0.02, 0.3), (7, 0.9, 0.2)]
)
def test_the_power_is_that_of_every_table(cuts: int, rate: float, other: float) -> None:
    """By Fisher's test of every pair of counts."""
    found = 0.0
    for a in range(cuts + 1):
        for b in range(cuts + 1):
            worse, better = (b, a) if rate < other else (a, b)
            table = np.array([[worse, cuts - worse], [better, cuts - better]])
            if scipy.stats.fisher_exact(table, alternative="greater").pvalue < 0.05:
                found += scipy.stats.binom.pmf(a, cuts, rate) * scipy.stats.binom.pmf(
                    b, cuts, other
                )
    assert power(cuts, rate, other) == pytest.approx(found, abs=1e-6)


def test_enough_cuts_distinguish_two_rates() -> None:
    cuts = cuts_to_distinguish(0.01, 0.05)
    assert 200 < cuts < 300
    assert power(cuts - 1, 0.01, 0.05) < 0.8 <= power(cuts, 0.01, 0.05)
    assert plan_versus(0.01, 0.05).cells_min == 2
    assert cuts < plan_versus(0.01, 0.05, cells=12).cuts < 2 * cuts


@pytest.mark.parametrize(
    ("cuts", "rate", "other", "cells"),
    [(10, 0.001, 0.6, 40), (24, 0.2, 0.8, 12), (20, 0.1, 0.6, 40)],
)
def test_the_power_in_a_family_is_that_of_simulated_comparisons(
    cuts: int, rate: float, other: float, cells: int
) -> None:
    family = Family(words="", others=[rate] * (cells - 1))
    found = simulate(family, old=rate, new=other, cuts=cuts, seeds=400).power
    assert power(cuts, rate, other, cells=cells) == pytest.approx(found, abs=0.07)


@pytest.mark.parametrize(("family", "seeds"), [(FAMILIES[1], 400), (FAMILIES[2], 400)])
def test_the_power_among_cells_that_lose_is_that_of_simulated_comparisons(
    family: Family, seeds: int
) -> None:
    for cuts, new in ((10, 0.6), (24, 0.2)):
        found = simulate(family, old=0.0, new=new, cuts=cuts, seeds=seeds).power
        assert predicted(family, old=0.0, new=new, cuts=cuts) == pytest.approx(found, abs=0.09)


def test_the_family_of_a_plan_has_cells_that_lose() -> None:
    alone, lossy = plan_versus(0.0, 0.6, cells=40), plan_versus(0.0, 0.6, cells=40, lossy=10)
    assert alone.cuts == plan_versus(0.0, 0.6).cuts, "cells that lose nothing cost nothing"
    assert alone.cuts < lossy.cuts
    assert "but 10 cells of all rates" in lossy.question
    with pytest.raises(ValueError, match="at most 3 others"):
        plan_versus(0.1, 0.6, cells=4, lossy=4)


def test_a_question_beyond_any_run_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 20,000 cuts"):
        cuts_to_distinguish(0.01, 0.0101)
    with pytest.raises(ValueError, match="equal"):
        cuts_to_distinguish(0.3, 0.3)
    with pytest.raises(ValueError, match="more than 10,000,000 cuts"):
        cuts_below(1e-9, 0)


def test_the_price_of_looking_is_stated() -> None:
    step = plan_until(Until.parse("upper<0.01"))
    assert step.cuts == 535
    assert "1.45 times the 368" in step.question
    assert "if each loses" in plan_until(Until.parse("lower>0.5")).question


def test_the_speed_is_that_of_the_newest_runs(tmp_path: Path) -> None:
    make_run(tmp_path, "20260101-000000-aaaa", jobs=1, trials=90, timings={"check": 36_000_000})
    make_run(tmp_path, "20260102-000000-aaaa", jobs=2, trials=90, timings={"check": 72_000})
    newest = make_run(
        tmp_path, "20260103-000000-aaaa", jobs=4, trials=10, timings={"load": 36_000, "cut": 36_000}
    )
    (tmp_path / "latest").symlink_to(newest)
    speed = measured_speed(tmp_path)
    assert speed is not None
    assert (speed.trials, speed.runs) == (100, 2)
    assert speed.per_hour == pytest.approx(100 / (90 / 100 + 10 / 200))


def test_a_folder_without_a_run_measures_nothing(tmp_path: Path) -> None:
    assert measured_speed(tmp_path / "missing") is None
    make_run(tmp_path, "no-timings", jobs=2, trials=3, timings={})
    make_run(tmp_path, "no-jobs", jobs=None, trials=3, timings={"check": 5})
    make_run(tmp_path, "no-trials", jobs=2, trials=0, timings={})
    garbled = make_run(tmp_path, "garbled", jobs=2, trials=1, timings={"check": 5})
    (garbled / "run.json").write_text('["not a run"]')
    (garbled / "trials.jsonl").write_text("nonsense\n")
    (tmp_path / "README.md").write_text("a file")
    assert measured_speed(tmp_path) is None


@pytest.mark.parametrize(
    ("cuts", "words"),
    [
        (1, "1 min"),
        (59, "59 min"),
        (60, "1 h 00 min"),
        (117, "1 h 57 min"),
        (60 * 24 * 12, "12 days"),
    ],
)
def test_a_time_in_words(cuts: int, words: str) -> None:
    assert Speed(per_hour=60.0, trials=1, runs=1).time_for(cuts) == words
