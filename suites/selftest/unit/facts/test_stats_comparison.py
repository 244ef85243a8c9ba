"""Two rates compared: the test, the interval of their difference, and families of tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from torture.facts.stats.comparison import compare, fishers_p, holm
from torture.facts.stats.rates import rate_of

RATES = (0.0005, 0.002, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.998, 0.9995)
SIZES = [(1, 1), (2, 2), (3, 3), (5, 20), (12, 12), (20, 20), (40, 12)]
PS = st.lists(st.floats(0, 1), max_size=6)


def chances(of: int, rate: float) -> npt.NDArray[np.float64]:
    return np.asarray(scipy.stats.binom.pmf(np.arange(of + 1), of, rate))


@pytest.mark.parametrize(("old", "new"), SIZES)
def test_the_interval_covers_the_difference_and_the_test_cries_wolf_rarely(
    old: int, new: int
) -> None:
    """Exactly: every pair of counts, by its probability, at every pair of rates."""
    every = [
        [compare(rate_of(a, old), rate_of(b, new)) for b in range(new + 1)] for a in range(old + 1)
    ]
    low = np.array([[comparison.low for comparison in row] for row in every])
    high = np.array([[comparison.high for comparison in row] for row in every])
    worse = np.array([[comparison.is_worse(comparison.p) for comparison in row] for row in every])
    for before in RATES:
        for after in RATES:
            difference = after - before
            covers = (low <= difference) & (difference <= high)
            assert chances(old, before) @ covers @ chances(new, after) >= 0.95, (before, after)
        assert chances(old, before) @ worse @ chances(new, before) <= 0.025, before


def test_fishers_tea() -> None:
    """Fisher's own example: 3 of 4 against 1 of 4; 34 of the 70 tables are as far out."""
    assert compare(rate_of(1, 4), rate_of(3, 4)).p == pytest.approx(34 / 70)


@given(
    st.tuples(st.integers(0, 400), st.integers(0, 400)),
    st.tuples(st.integers(0, 400), st.integers(0, 400)),
)
def test_fishers_test_is_that_of_scipy(one: tuple[int, int], other: tuple[int, int]) -> None:
    """Each side as (events, others)."""
    old, new = (rate_of(side[0], sum(side)) for side in (one, other))
    expected = min(1.0, float(scipy.stats.fisher_exact(np.array([one, other])).pvalue))
    assert fishers_p(old, new) == fishers_p(new, old)
    assert fishers_p(old, new) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_more_losses_are_worse_and_fewer_are_not() -> None:
    few, many = rate_of(1, 100), rate_of(20, 100)
    worse, better = compare(few, many), compare(many, few)
    assert worse.difference == pytest.approx(0.19)
    assert worse.p == better.p < 0.001
    assert (worse.low, worse.high) == pytest.approx((-better.high, -better.low))
    assert 0 < worse.low < 0.19 < worse.high
    assert worse.is_worse(worse.p)
    assert not worse.is_worse(0.05)
    assert not better.is_worse(better.p)


def test_equal_counts_are_no_difference() -> None:
    same = compare(rate_of(3, 12), rate_of(3, 12))
    assert same.p == 1.0
    assert same.difference == 0.0
    assert not same.is_worse(same.p)


@pytest.mark.parametrize(("old", "new"), [((0, 0), (12, 12)), ((0, 12), (0, 0)), ((0, 0), (0, 0))])
def test_without_trials_any_rate_is_possible(old: tuple[int, int], new: tuple[int, int]) -> None:
    comparison = compare(rate_of(*old), rate_of(*new))
    assert (comparison.p, comparison.difference) == (1.0, None)
    assert comparison.high - comparison.low >= 1
    assert not comparison.is_worse(0.0)


def test_holms_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.2]) == (0.2,)
    assert holm([0.6, 0.7]) == (1.0, 1.0)


@given(PS)
def test_holm_is_the_closed_test_of_bonferronis(ps: list[float]) -> None:
    """Slowly: a p is corrected to the largest that Bonferroni gives any family it is in."""
    places = range(len(ps))
    families = [f for size in places for f in combinations(places, size + 1)]
    for place, corrected in enumerate(holm(ps)):
        of_families = [len(f) * min(ps[member] for member in f) for f in families if place in f]
        assert corrected == pytest.approx(min(1.0, max(of_families)))
