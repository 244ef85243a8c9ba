"""Rates compared, and families of cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
import scipy

from suites.benchmarks.versus_power import FAMILIES, LOSSY, Family, simulate, simulate_stopped
from torture.facts.stats.comparison import (
    SIGNIFICANT,
    OneSided,
    compare,
    corrected,
    one_sided,
    upper_tails,
)
from torture.facts.stats.rates import rate_of
from torture.facts.stats.sequential import p_of_disjoint, sequential_rate_of

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


# Families of cells: the correction is exact where cells are few, and finds a disaster among many.

SEEDS = 300


def p_of(old: tuple[int, int], new: tuple[int, int]) -> float:
    return one_sided(rate_of(*old), rate_of(*new)).p


@pytest.mark.parametrize(
    ("old", "new"), [((0, 10), (6, 10)), ((3, 12), (3, 12)), ((5, 7), (2, 9)), ((0, 1), (1, 1))]
)
def test_the_p_is_fishers(old: tuple[int, int], new: tuple[int, int]) -> None:
    table = np.array([[new[0], new[1] - new[0]], [old[0], old[1] - old[0]]])
    expected = scipy.stats.fisher_exact(table, alternative="greater").pvalue
    assert p_of(old, new) == pytest.approx(expected)


def test_a_cell_without_an_event_costs_nothing() -> None:
    disaster, silent = (
        one_sided(rate_of(0, 10), rate_of(6, 10)),
        one_sided(rate_of(0, 10), rate_of(0, 10)),
    )
    assert corrected([disaster]) == (disaster.p,)
    assert corrected([silent] * 39 + [disaster])[-1] == pytest.approx(disaster.p)
    assert corrected([disaster] + [silent] * 39)[1] == 1.0
    one = one_sided(rate_of(1, 10), rate_of(0, 10))  # at best p = 0.5
    assert corrected([one] * 39 + [disaster])[-1] == pytest.approx(disaster.p)


def test_a_continuous_family_is_holms() -> None:
    ps = [0.01, 0.04, 0.03, 0.005]
    tests = [OneSided(p=p, attainable=None) for p in ps]
    assert corrected(tests) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert corrected([]) == ()


@pytest.mark.parametrize("rates", [(0.3, 0.3, 0.3), (0.05, 0.5, 0.9)])
def test_three_equal_cells_are_accused_in_5_percent_at_most(rates: tuple[float, ...]) -> None:
    """Exactly: every triple of totals and of tables, by its probability."""
    cuts, alarm = 5, 0.0
    tables = [(a, b) for a in range(cuts + 1) for b in range(cuts + 1)]
    tests = {(a, b): one_sided(rate_of(a, cuts), rate_of(b, cuts)) for a, b in tables}
    chances = [scipy.stats.binom.pmf(np.arange(cuts + 1), cuts, rate) for rate in rates]
    for triple in product(tables, repeat=3):
        # a family with a finding has one of p below 0.05
        if min(tests[table].p for table in triple) >= SIGNIFICANT:
            continue
        if min(corrected([tests[table] for table in triple])) < SIGNIFICANT:
            alarm += float(
                np.prod([own[a] * own[b] for own, (a, b) in zip(chances, triple, strict=True)])
            )
    assert 0 < alarm <= 0.05


@pytest.mark.parametrize(("family", "power"), list(zip(FAMILIES, (0.9, 0.77, 0.64), strict=True)))
def test_a_disaster_among_forty_cells_is_found_and_sound_cells_are_not_accused(
    family: Family, power: float
) -> None:
    found = simulate(family, old=0.0, new=0.6, cuts=10, seeds=SEEDS)
    assert found.power >= power
    assert found.false_alarms <= 0.05


def test_equal_runs_are_rarely_accused() -> None:
    """Of 40 lossy cells, the worst case: every cell may raise a false alarm."""
    family = Family(words="", others=list(LOSSY) * 4)
    found = simulate(family, old=0.5, new=0.5, cuts=24, seeds=SEEDS)
    assert found.power + found.false_alarms <= 0.08, "0.05, with three standard deviations"


def test_equal_runs_that_stop_at_an_answer_are_rarely_accused() -> None:
    now, fishers = simulate_stopped(0.2, 0.2, seeds=SEEDS)
    assert now <= 0.05
    assert fishers > 0.05
    assert simulate_stopped(0.02, 0.5, seeds=50)[0] > 0.9


def test_the_p_of_stopped_runs_is_that_of_disjoint_intervals() -> None:
    for events in range(5, 30):
        old, new = sequential_rate_of(2, 40), sequential_rate_of(events, 40)
        p = p_of_disjoint(old, new)
        assert (p < SIGNIFICANT) == (old.high < new.low), events
    assert p_of_disjoint(new, old) == 1.0
    assert p_of_disjoint(new, new) == 1.0
    assert one_sided(sequential_rate_of(2, 40), rate_of(29, 40)).attainable is None


def test_the_tails_are_of_the_hypergeometric_distribution() -> None:
    tails = upper_tails(7, 5, 6)
    expected = [scipy.stats.hypergeom.sf(k - 1, 12, 6, 5) for k in range(6)]
    assert tails == pytest.approx(expected)
