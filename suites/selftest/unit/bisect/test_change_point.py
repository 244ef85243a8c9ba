"""The first version that loses: probabilities against slow integrals, and the version to try next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from torture.features.bisect.change_point import (
    Tried,
    credible,
    differ_p,
    first_probabilities,
    lossy_probability,
    to_try_next,
    unlikeness,
)

_TRIED = st.dictionaries(
    st.integers(0, 4),
    st.tuples(st.integers(0, 6), st.integers(0, 6)).map(
        lambda pair: Tried(trials=sum(pair), losses=pair[0])
    ),
)


def _chance(tried: dict[int, Tried], first: int) -> float:
    """The probability of these outcomes if this version is the first one, by integrals over shares."""

    def side(numbers: range, prior: tuple[float, float]) -> float:
        own = [tried.get(number, Tried()) for number in numbers]
        losses = sum(one.losses for one in own)
        kept = sum(one.trials for one in own) - losses

        def density(share: float) -> float:
            return float(share**losses * (1 - share) ** kept * stats.beta.pdf(share, *prior))

        return float(integrate.quad(density, 0, 1)[0])

    before = (side(range(first), (1, 20)) + side(range(first), (1, 1))) / 2
    return before * side(range(first, 5), (1, 1))


@given(_TRIED)
def test_probabilities_are_those_of_the_integrals(tried: dict[int, Tried]) -> None:
    chances = np.array([0, *(_chance(tried, first) for first in range(1, 5))])
    assert first_probabilities(5, tried) == pytest.approx(chances / chances.sum(), abs=1e-6)


def test_without_a_trial_all_are_alike() -> None:
    assert first_probabilities(5, {}) == pytest.approx([0, 0.25, 0.25, 0.25, 0.25])
    with pytest.raises(ValueError, match="before it"):
        first_probabilities(1, {})


def test_many_losses_leave_one_version() -> None:
    tried = {0: Tried(trials=9), 2: Tried(trials=9), 3: Tried(trials=9, losses=9)}
    probabilities = first_probabilities(6, tried)
    assert probabilities[3] > 0.99
    assert lossy_probability(2, probabilities) < 0.01
    assert credible(probabilities, 0.95) == [3]
    assert to_try_next(probabilities, frozenset()) is None


def test_a_version_without_a_loss_may_lose_seldom() -> None:
    """One trial of a bug that shows in one of five says little."""
    ends = {0: Tried(trials=20), 8: Tried(trials=20, losses=4)}
    before = first_probabilities(9, ends)
    after = first_probabilities(9, ends | {4: Tried(trials=1)})
    assert 0.4 < lossy_probability(4, after) < lossy_probability(4, before)


@given(st.integers(2, 12), st.frozensets(st.integers(0, 12)))
def test_the_next_one_is_the_middle_one_that_can_be_tried(
    versions: int, untriable: frozenset[int]
) -> None:
    probabilities = first_probabilities(versions, {})
    following = to_try_next(probabilities, untriable)
    left = [number for number in range(1, versions - 1) if number not in untriable]
    if following is None:
        assert not left
    else:
        distances = {number: abs(lossy_probability(number, probabilities) - 0.5) for number in left}
        assert distances[following] == pytest.approx(min(distances.values()))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_ends_are_compared_by_fishers_exact_test(
    good: int, good_losses: int, bad: int, bad_losses: int
) -> None:
    without = Tried(trials=good + good_losses, losses=good_losses)
    with_it = Tried(trials=bad + bad_losses, losses=bad_losses)
    table = np.array([[bad_losses, bad], [good_losses, good]])
    expected = stats.fisher_exact(table, alternative="greater")
    assert differ_p(without, with_it) == pytest.approx(expected.pvalue, abs=1e-9)


def test_a_version_unlike_its_side_is_told_by_an_exact_test() -> None:
    tried = {0: Tried(trials=12), 3: Tried(trials=4, losses=4), 6: Tried(trials=8)}
    tried |= {number: Tried(trials=8, losses=6) for number in (7, 8, 9)}
    unlike = unlikeness(tried, 7)
    one_side = stats.fisher_exact(np.array([[4, 0], [0, 20]])).pvalue
    assert unlike[3] == pytest.approx(6 * one_side)
    assert unlike[3] < 0.01
    assert {number: p for number, p in unlike.items() if number >= 7} == {7: 1.0, 8: 1.0, 9: 1.0}
    assert unlikeness({}, 3) == {}
