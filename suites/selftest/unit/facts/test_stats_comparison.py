"""Two rates compared: the interval of their difference."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy

from torture.facts.stats.comparison import compare
from torture.facts.stats.rates import rate_of

RATES = (0.0005, 0.002, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.998, 0.9995)
SIZES = [(1, 1), (2, 2), (3, 3), (5, 20), (12, 12), (20, 20), (40, 12)]


def chances(of: int, rate: float) -> npt.NDArray[np.float64]:
    return np.asarray(scipy.stats.binom.pmf(np.arange(of + 1), of, rate))


@pytest.mark.parametrize(("old", "new"), SIZES)
def test_the_interval_covers_the_difference(old: int, new: int) -> None:
    """Exactly: every pair of counts, by its probability, at every pair of rates."""
    every = [
        [compare(rate_of(a, old), rate_of(b, new)) for b in range(new + 1)] for a in range(old + 1)
    ]
    low = np.array([[comparison.low for comparison in row] for row in every])
    high = np.array([[comparison.high for comparison in row] for row in every])
    for before in RATES:
        for after in RATES:
            difference = after - before
            covers = (low <= difference) & (difference <= high)
            assert chances(old, before) @ covers @ chances(new, after) >= 0.95, (before, after)


def test_more_losses_are_worse_and_fewer_are_not() -> None:
    few, many = rate_of(1, 100), rate_of(20, 100)
    worse, better = compare(few, many), compare(many, few)
    assert worse.difference == pytest.approx(0.19)
    assert (worse.low, worse.high) == pytest.approx((-better.high, -better.low))
    assert 0 < worse.low < 0.19 < worse.high


def test_equal_counts_are_no_difference() -> None:
    same = compare(rate_of(3, 12), rate_of(3, 12))
    assert same.difference == 0.0


@pytest.mark.parametrize(("old", "new"), [((0, 0), (12, 12)), ((0, 12), (0, 0)), ((0, 0), (0, 0))])
def test_without_trials_any_rate_is_possible(old: tuple[int, int], new: tuple[int, int]) -> None:
    comparison = compare(rate_of(*old), rate_of(*new))
    assert comparison.difference is None
    assert comparison.high - comparison.low >= 1
