"""Ratios of figures over rounds, and the coverage of their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from torture.features.speed.jobs.slow_motion import ROUNDS_MIN, Estimate, mean_of, ratio_of

_FIGURES = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=9)


@given(_FIGURES, st.floats(0.1, 10))
@settings(max_examples=examples(60), deadline=None)
def test_a_constant_ratio_is_found_on_a_host_that_drifts(figures: list[float], by: float) -> None:
    """A slow round slows both figures."""
    estimate = ratio_of([figure * by for figure in figures], figures)
    assert estimate.value == pytest.approx(by)
    if len(figures) >= ROUNDS_MIN:
        assert estimate.low == pytest.approx(by)
        assert estimate.high == pytest.approx(by)
    else:
        assert estimate.low is estimate.high is None
        assert math.isinf(estimate.width)


@given(st.lists(st.floats(0.01, 1e4), min_size=ROUNDS_MIN, max_size=9))
@settings(max_examples=examples(40), deadline=None)
def test_an_interval_holds_its_estimate(figures: list[float]) -> None:
    estimate = mean_of(figures)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.value * 1.001
    assert estimate.value * 0.999 <= estimate.high
    assert estimate.low * estimate.high == pytest.approx(estimate.value**2)
    assert min(figures) * 0.999 <= estimate.value <= max(figures) * 1.001


@pytest.mark.parametrize("figures", [[], [1.0, 0.0], [1.0, -1.0], [math.inf], [math.nan]])
def test_figures_that_are_not_positive_are_refused(figures: list[float]) -> None:
    with pytest.raises(ValueError, match="no positive figures"):
        mean_of(figures)
    with pytest.raises(ValueError, match="no positive figures"):
        ratio_of([1.0] * len(figures), figures)


def test_rounds_come_in_pairs() -> None:
    with pytest.raises(ValueError, match="2 rounds against 1"):
        ratio_of([1.0, 2.0], [1.0])


@pytest.mark.parametrize("rounds", [3, 4, 8])
def test_the_intervals_cover(rounds: int) -> None:
    """In 1,000 simulations of figures with a spread of a tenth: 95 %, three errors less at most."""
    generator = np.random.default_rng(7)
    estimates = [mean_of(np.exp(generator.normal(0, 0.1, rounds)).tolist()) for _ in range(1000)]
    covered = sum((one.low or 2) <= 1 <= (one.high or 0) for one in estimates)
    assert 0.95 - 3 * 0.007 < covered / 1000 < 0.95 + 3 * 0.007


def test_an_estimate_lies_within_bounds() -> None:
    assert Estimate(value=2.0).is_within(1, 2)
    assert not Estimate(value=2.1).is_within(1, 2)
    assert Estimate(value=2.0, low=1.0, high=4.0).width == 4
