"""The interval that may be looked at after every trial, and the questions it answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from torture.facts.stats.rates import rate_of
from torture.facts.stats.sequential import Answer, Counted, Until, is_below, sequential_rate_of

BATCHES = 5
BATCH = 2_000
ERROR = 0.025
"""The promised error of each side."""

COUNTS = st.integers(0, 4000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))
BELOW_ONE_PERCENT = Until.parse("upper<0.01")

Counts = npt.NDArray[np.int_]


def most_events(says: Callable[[int, int], bool], looks: int) -> Counts:
    """After each of `looks` trials the most events of which `says(events, trials)` holds, else -1.

    It must hold of fewer events too, and of as many after more trials.
    """
    most, found = -1, []
    for trials in range(1, looks + 1):
        while most < trials and says(most + 1, trials):
            most += 1
        found.append(most)
    return np.array(found)


def seen_yes(until: Until, looks: int) -> Counts:
    """After each trial, at most how many events answer `upper<` with yes."""
    return most_events(lambda events, of: until.answer(events, of) is Answer.YES, looks)


def campaigns_that_fall(to: Counts, rate: float, *, seed: int) -> float:
    """The share of 10,000 campaigns, looked at after each trial, that ever have so few events.

    Of 2,000 in the fast loop.
    """
    draw = np.random.default_rng(seed)
    batches, fell = examples(BATCHES), 0
    for _ in range(batches):
        events = np.cumsum(draw.random((BATCH, len(to)), dtype=np.float32) < rate, axis=1)
        fell += int(np.any(events <= to, axis=1).sum())
    return fell / (batches * BATCH)


def chance_to_fall(to: Counts, rate: float) -> float:
    """The same, exactly: the probability of each count along the way, without those that fell."""
    at = np.zeros(len(to) + 1)
    at[0], fell = 1.0, 0.0
    for most in to:
        at[1:] = at[1:] * (1 - rate) + at[:-1] * rate
        at[0] *= 1 - rate
        fell += float(at[: most + 1].sum())
        at[: most + 1] = 0
    return fell


@pytest.mark.parametrize("rate", [0.01, 0.0101, 0.012])
def test_a_wrong_yes_is_as_rare_as_promised(rate: float) -> None:
    to = seen_yes(BELOW_ONE_PERCENT, 4 * BELOW_ONE_PERCENT.trials_at_best)
    assert campaigns_that_fall(to, rate, seed=1) <= ERROR
    assert chance_to_fall(to, rate) <= ERROR


@pytest.mark.parametrize("limit", [0.02, 0.3, 0.5, 0.9])
def test_a_wrong_yes_is_rare_at_every_limit_for_thousands_of_looks(limit: float) -> None:
    to = seen_yes(Until.parse(f"upper<{limit}"), 3000)
    assert 0 < chance_to_fall(to, limit) <= ERROR


def test_a_wrong_no_is_as_rare_as_promised() -> None:
    """No to `lower>` falls like yes to `upper<`; its question is asked of the mirrored counts."""
    until = Until.parse("upper<0.3")

    def refuses(others: int, of: int) -> bool:
        return until.answer(of - others, of) is Answer.NO

    to = most_events(refuses, 1000)
    assert 0 < campaigns_that_fall(to, 1 - 0.3, seed=2) <= ERROR
    assert campaigns_that_fall(to, 1 - 0.45, seed=2) > 0.99


def test_looking_at_a_fixed_interval_after_each_trial_breaks_the_guarantee() -> None:
    to = most_events(lambda events, of: rate_of(events, of).high < 0.01, 2140)
    assert campaigns_that_fall(to, 0.01, seed=3) > 2 * ERROR
    assert chance_to_fall(to, 0.01) > 2 * ERROR


@pytest.mark.parametrize(("rate", "stops"), [(0.0, 1.0), (0.001, 0.99), (0.003, 0.8)])
def test_below_the_limit_it_does_stop(rate: float, stops: float) -> None:
    to = seen_yes(BELOW_ONE_PERCENT, 4 * BELOW_ONE_PERCENT.trials_at_best)
    assert campaigns_that_fall(to, rate, seed=4) >= stops


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.97])
def test_the_interval_covers_the_rate_at_every_look_together(rate: float) -> None:
    looks = 600
    too_few = most_events(lambda events, of: sequential_rate_of(events, of).high < rate, looks)
    too_few_others = most_events(
        lambda others, of: sequential_rate_of(of - others, of).low > rate, looks
    )
    draw = np.random.default_rng(5)
    batches, missed = examples(BATCHES), 0
    for _ in range(batches):
        events = np.cumsum(draw.random((BATCH, looks)) < rate, axis=1)
        others = np.arange(1, looks + 1) - events
        missed += int(np.any((events <= too_few) | (others <= too_few_others), axis=1).sum())
    assert missed / (batches * BATCH) <= 0.05


@pytest.mark.parametrize(("events", "of"), [(0, 1), (0, 40), (3, 50), (20, 50), (49, 50), (7, 400)])
def test_the_bound_is_where_the_integral_is_forty(events: int, of: int) -> None:
    """The martingale by numerical integration, with q = p0 t."""
    high = sequential_rate_of(events, of).high

    def ratio(t: float) -> float:
        return float(t**events * ((1 - high * t) / (1 - high)) ** (of - events))

    assert scipy.integrate.quad(ratio, 0, 1, limit=200)[0] == pytest.approx(40, rel=1e-5)


@settings(deadline=None)
@given(COUNTS)
def test_it_is_wider_than_the_fixed_interval_holds_it_and_mirrors(counts: tuple[int, int]) -> None:
    events, of = counts
    rate, fixed = sequential_rate_of(events, of), rate_of(events, of)
    assert rate.is_sequential
    assert 0 <= rate.low <= fixed.low <= fixed.high <= rate.high <= 1
    mirrored = sequential_rate_of(of - events, of)
    assert rate.low == pytest.approx(1 - mirrored.high, abs=1e-12)


@pytest.mark.parametrize("events", [0, 1, 2, 317, 50_000, 99_683, 99_999, 100_000])
def test_a_hundred_thousand_trials_are_no_trouble(events: int) -> None:
    rate, fixed = sequential_rate_of(events, 100_000), rate_of(events, 100_000)
    assert 0 <= rate.low <= rate.share <= rate.high <= 1
    assert rate.high - rate.low < 2.5 * (fixed.high - fixed.low)


@settings(deadline=None)
@given(COUNTS, st.floats(0.0005, 0.9995))
def test_an_answer_agrees_with_the_interval(counts: tuple[int, int], limit: float) -> None:
    rate = sequential_rate_of(*counts)
    upper, lower = Until.parse(f"upper<{limit}"), Until.parse(f"lower>{limit}")
    below, above = rate.high < limit, rate.low > limit
    if min(abs(rate.high - limit), abs(rate.low - limit)) < 1e-9:
        return  # on the bound itself a rounding decides
    assert upper.answer(*counts) == (Answer.YES if below else Answer.NO if above else None)
    assert lower.answer(*counts) == (Answer.YES if above else Answer.NO if below else None)


def test_without_trials_nothing_is_known() -> None:
    rate = sequential_rate_of(0, 0)
    assert (rate.low, rate.high) == (0.0, 1.0)
    assert BELOW_ONE_PERCENT.answer(0, 0) is None
    assert not is_below(0, 0, 0.9999)


def test_the_fewest_trials_and_their_price() -> None:
    assert BELOW_ONE_PERCENT.trials_at_best == 535
    assert BELOW_ONE_PERCENT.answer(0, 534) is None
    assert BELOW_ONE_PERCENT.answer(0, 535) is Answer.YES
    assert rate_of(0, 367).high >= 0.01 > rate_of(0, 368).high
    lower = Until.parse("lower>0.99")
    assert lower.trials_at_best == 535
    assert lower.answer(535, 535) is Answer.YES
    assert 50_000 < Until.parse("upper<0.0001").trials_at_best < 60_000


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("upper<0.01", "loss upper<0.01"),
        ("  upper < 0.01 ", "loss upper<0.01"),
        ("lower>0.5", "loss lower>0.5"),
        ("loss lower > .5", "loss lower>0.5"),
        ("corruption upper<1e-3", "corruption upper<0.001"),
    ],
)
def test_a_question_is_read_however_it_is_spaced(text: str, question: str) -> None:
    until = Until.parse(text)
    assert str(until) == question
    assert Until.parse(str(until)) == until
    assert (until.counted is Counted.CORRUPTION) == text.startswith("corruption")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "cannot read the question"),
        ("0.01", "cannot read the question"),
        ("rot upper<0.01", "cannot read the question"),
        ("upper>0.01", "ask 'upper<', not 'upper>'"),
        ("lower<0.01", "ask 'lower>', not 'lower<'"),
        ("upper<=0.01", "'=0.01' is no rate"),
        ("upper<1%", "'1%' is no rate"),
        ("upper<1", "1 is not between"),
        ("upper<0.00001", "0.00001 is not between"),
        ("lower>nan", "nan is not between"),
        ("upper<-1", "-1 is not between"),
    ],
)
def test_an_invalid_question_is_refused_with_an_example(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"say e\.g\. 'upper<0\.01'") as refused:
        Until.parse(text)
    assert complaint in str(refused.value)
