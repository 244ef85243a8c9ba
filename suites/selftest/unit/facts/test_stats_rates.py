"""Printed intervals: they cover the true rate as often as stated."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from torture.facts.stats.rates import (
    Rate,
    counts_in_words,
    in_words,
    interval_in_words,
    printed_bounds,
    rate_of,
    share_in_words,
)
from torture.facts.stats.sequential import sequential_rate_of

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
