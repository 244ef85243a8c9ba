"""Printed intervals cover the true rate as often as stated; sample sizes, and the host's speed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.benchmarks.versus_power import FAMILIES, Family, predicted, simulate
from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.measured_runs import make_run
from torture.facts.stats.planning import (
    cuts_below,
    cuts_of_fixed_size,
    cuts_to_detect,
    cuts_to_distinguish,
    plan_until,
    plan_versus,
    power,
)
from torture.facts.stats.rates import (
    Rate,
    counts_in_words,
    in_words,
    interval_in_words,
    printed_bounds,
    rate_of,
    share_in_words,
)
from torture.facts.stats.sequential import Until, sequential_rate_of
from torture.trials.campaign.progress import Speed, measured_speed

CAMPAIGNS = 10_000
SIZES = (1, 2, 3, 5, 12, 20, 50, 100, 300, 1000)
RATES = (0.0005, 0.01, 0.05, 0.1, 0.3, 0.5, 0.77, 0.9, 0.99, 0.9995)

Floats = npt.NDArray[np.float64]
Shown = Callable[[Rate], tuple[float, float]]

COUNTS = st.integers(1, 3000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))


def to_the_nearest(rate: Rate) -> tuple[float, float]:
    """The usual way to print: whole per cents."""
    return round(rate.low, 2), round(rate.high, 2)


def bounds_of(of: int, shown: Shown = printed_bounds) -> tuple[Floats, Floats]:
    """The lower and the upper bounds of every possible count."""
    both = np.array([shown(rate_of(events, of)) for events in range(of + 1)])
    return both[:, 0], both[:, 1]


def coverage(of: int, rates: Floats, shown: Shown = printed_bounds) -> Floats:
    """How often each true rate is within what is printed, exactly: every count, by its probability."""
    low, high = bounds_of(of, shown)
    likely = scipy.stats.binom.pmf(np.arange(of + 1), of, rates[:, None])
    covered = (low <= rates[:, None]) & (rates[:, None] <= high)
    return np.asarray((likely * covered).sum(axis=1))


def rates_to_try(of: int) -> Floats:
    """A grid, and both sides of every printed bound: coverage is lowest beside one."""
    ends = np.concatenate(bounds_of(of))
    beside = [np.nextafter(ends, 0), np.nextafter(ends, 1), ends]
    fine = np.geomspace(1e-6, 0.1, 40)
    rates = np.unique(np.concatenate([*beside, fine, 1 - fine, np.linspace(0.01, 0.99, 99)]))
    return rates[(rates > 0) & (rates < 1)]


@pytest.mark.parametrize("of", SIZES)
def test_the_printed_interval_covers_every_rate(of: int) -> None:
    assert coverage(of, rates_to_try(of)).min() >= 0.95


def test_rounded_to_the_nearest_it_would_not() -> None:
    assert coverage(1000, rates_to_try(1000), to_the_nearest).min() < 0.01


@pytest.mark.parametrize("of", [12, 20, 100, 300, 1000])
def test_ten_thousand_campaigns_are_covered(of: int) -> None:
    draw = np.random.default_rng(of)
    low, high = bounds_of(of)
    for rate in RATES:
        events = draw.binomial(of, rate, CAMPAIGNS)
        assert np.mean((low[events] <= rate) & (rate <= high[events])) >= 0.95, rate


@settings(deadline=None)
@given(COUNTS)
def test_the_printed_interval_contains_the_exact_one(counts: tuple[int, int]) -> None:
    rate = rate_of(*counts)
    low, high = printed_bounds(rate)
    assert low <= rate.low <= rate.high <= high
    assert high - rate.high < 0.01
    assert rate.low - low < 0.01
    assert low == 0 or low > rate.low * 0.9


@settings(deadline=None, max_examples=examples(50))
@given(COUNTS)
def test_the_interval_is_that_of_another_implementation(counts: tuple[int, int]) -> None:
    events, of = counts
    reference = scipy.stats.binomtest(events, of).proportion_ci(0.99, method="exact")
    rate = rate_of(events, of, confidence=0.99)
    assert rate.low == pytest.approx(reference.low, abs=1e-9)
    assert rate.high == pytest.approx(reference.high, abs=1e-9)


def test_no_loss_in_300_means_up_to_1_22_percent() -> None:
    rate = rate_of(0, 300)
    assert rate.high == pytest.approx(1 - 0.025 ** (1 / 300), rel=1e-12)
    assert rate.high == pytest.approx(0.012221, abs=1e-6)
    assert not rate.is_sequential


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0, 0.01222097, "0-1.23 %"),
        (0.0320709, 0.3789268, "3.2-38 %"),
        (0.9913, 0.9997, "99-100 %"),
        (0.0998, 0.0998, "9.97-9.98 %"),
        (0.09999, 0.09999, "9.99-10 %"),
        (0.000000253, 0.0000557, "0.0000253-0.00557 %"),
        (0.5, 1.0, "50-100 %"),
    ],
)
def test_bounds_are_rounded_outward(low: float, high: float, words: str) -> None:
    assert interval_in_words(Rate(events=1, trials=2, low=low, high=high)) == words


@pytest.mark.parametrize(
    ("events", "of", "words"),
    [
        (0, 7, "0 %"), (7, 7, "100 %"), (37, 100, "37 %"), (3, 20, "15 %"), (1, 30, "3.3 %"),
        (1, 100_000, "0.001 %"), (1, 300, "0.33 %"), (299, 300, "99.7 %"),
        (99_999, 100_000, "99.999 %"), (994, 1000, "99 %"), (996, 1000, "99.6 %"), (1, 10, "10 %"),
    ],
)  # fmt: skip
def test_a_share_is_never_called_none_or_all_when_it_is_not(
    events: int, of: int, words: str
) -> None:
    assert share_in_words(events / of) == words


@settings(deadline=None)
@given(st.integers(2, 10**7).flatmap(lambda of: st.tuples(st.integers(1, of - 1), st.just(of))))
def test_a_printed_share_is_near_and_between(counts: tuple[int, int]) -> None:
    share = counts[0] / counts[1]
    shown = float(share_in_words(share).removesuffix(" %"))
    assert 0 < shown < 100
    assert math.isclose(shown, share * 100, rel_tol=0.051)


@settings(deadline=None)
@given(COUNTS.flatmap(lambda counts: st.tuples(st.just(counts), st.integers(0, counts[0]))))
def test_events_of_later_tries_alone_move_no_lower_bound(
    drawn: tuple[tuple[int, int], int],
) -> None:
    (events, of), later = drawn
    for kind in (rate_of, sequential_rate_of):
        rate = kind(events, of, later=later)
        assert (rate.low, rate.high) == (kind(events - later, of).low, kind(events, of).high)
        assert (rate.events, rate.drawn) == (events, events - later)


def test_counts_without_an_interval() -> None:
    assert counts_in_words(rate_of(299, 300)) == "299/300 99.7 %"
    assert counts_in_words(rate_of(0, 0)) == "-"


def test_in_words_says_counts_share_and_interval() -> None:
    assert in_words(rate_of(299, 300)) == "299/300 99.7 % [98-100 %]"
    assert in_words(rate_of(0, 0)) == "-"


# Sample sizes, and the host's speed.


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
