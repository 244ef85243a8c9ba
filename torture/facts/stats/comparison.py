"""Compares two rates, and many cells of two runs at once: which are higher, and not by chance.

Each cell of a family has a one-sided p, that of Fisher's exact test, given the total of its events. Its
attainable values are few. 10 cuts each without any event in both runs attain only 1. Holm's correction
charges each p for every cell of the family, also for cells that cannot raise a false alarm. One disaster
among 40 cells then goes unseen. Here a cell costs what it can contribute. Each p is corrected to a sum
over the cells that are not rejected yet: of each the largest attainable p up to it. A cell whose smallest
attainable p exceeds the level costs nothing, as in Tarone's method. At most 5 % of families without any
difference have a finding. The same holds for the cells without a difference among others.

A run that stopped when its question was answered has no fixed number of trials, and Fisher's test is
wrong for it. Its p is the error at which the two anytime-valid intervals become disjoint. It attains any
value.

Sources:

- R. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990);
- P. Westfall, R. Wolfinger, "Multiple tests with discrete distributions", Amer. Statist. 51 (1997);
- S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from torture.facts.stats.rates import CONFIDENCE, Rate, rate_of
from torture.facts.stats.sequential import p_of_disjoint, sequential_rate_of

Array = npt.NDArray[np.float64]

_ROUNDING = 1 + 1e-9
"""Two equal p from different sums of floats differ by less than this factor."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OneSided:
    """The one-sided test of a cell: whether its new rate is higher."""

    p: float
    attainable: Array | None
    """All values that its p can have, ascending, given its total of events; None for any value."""

    def most_up_to(self, p: float) -> float:
        """The probability that the cell's p is at most `p`, if the rates are equal."""
        if self.attainable is None:
            return p
        number = int(np.searchsorted(self.attainable, p * _ROUNDING, side="right"))
        return float(self.attainable[number - 1]) if number else 0.0


def one_sided(old: Rate, new: Rate) -> OneSided:
    """Test whether the new rate is higher; both must have trials."""
    if old.is_sequential or new.is_sequential:
        return OneSided(p=p_of_disjoint(old, new), attainable=None)
    tails = _cached_tails(old.trials, new.trials, old.events + new.events)
    fewest = max(0, old.events + new.events - old.trials)
    p = float(tails[new.events - fewest])
    return OneSided(p=p, attainable=tails[::-1])


def corrected(tests: Sequence[OneSided]) -> tuple[float, ...]:
    """Each p corrected for its family, in the order given; below 0.05 it is a finding."""
    result = [0.0] * len(tests)
    waiting = sorted(range(len(tests)), key=lambda place: tests[place].p)
    worst = 0.0
    while waiting:
        p = tests[waiting[0]].p
        worst = max(worst, min(1.0, sum(tests[place].most_up_to(p) for place in waiting)))
        result[waiting.pop(0)] = worst
    return tuple(result)


def upper_tails(old_trials: int, new_trials: int, events: int) -> Array:
    """The one-sided p for each possible number of the new run's events, from the fewest on.

    Under equal rates that number is hypergeometric.
    """
    new = np.arange(max(0, events - old_trials), min(events, new_trials) + 1)
    logs = (
        _log_ways(new_trials, new)
        + _log_ways(old_trials, events - new)
        - _log_ways(old_trials + new_trials, np.array(events))
    )
    tails: Array = np.minimum(1.0, np.cumsum(np.exp(logs)[::-1])[::-1])
    tails[0] = 1.0
    return tails


_cached_tails = lru_cache(maxsize=1000)(upper_tails)
"""Cells of a run mostly have the same number of trials, and few totals."""


def _log_ways(of: int, chosen: npt.NDArray[np.int_]) -> Array:
    return np.asarray(gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1))


SIGNIFICANT = 0.05
_AS_LIKELY = 1 + 1e-7
"""Tables whose chances differ by less are equally likely: logarithms of large counts are inexact."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A new rate compared with an old one."""

    p: float
    """Two-sided: Fisher's exact test, or for runs that stopped at an answer an anytime-valid one.

    Correct it with `holm` where there are others.
    """
    difference: float | None
    """New share less old share; None when one side has no trials."""
    low: float
    high: float
    """The 95 % interval of the difference of the true rates."""

    def is_worse(self, corrected_p: float) -> bool:
        """Whether the new rate is significantly higher; `corrected_p` comes from `holm`."""
        return corrected_p < SIGNIFICANT and self.difference is not None and self.difference > 0


def compare(old: Rate, new: Rate) -> Comparison:
    """Compare two rates by their counts; with no trials on one side any difference is possible.

    The interval: both rates are in their own exact 97.5 % intervals with at least 95 % confidence. So
    their difference is between the farthest ends of these (Bonferroni). That holds at all rates and
    sizes, also when the two runs drew the same trials from one seed.

    MOVER (Newcombe 1998; Zou and Donner 2008) with exact 95 % intervals is shorter. But it covered only
    90.6 % at 1 and 1 trials and 92.8 % at 300 and 300, for rates near 0 and 1.

    Where one of the two runs stopped at an answer, p and interval are anytime-valid. Fisher's p would be
    below 0.05 far too often for equal pairs of such runs.

    The interval may include 0 where the test is significant. The test asks whether there is a difference,
    which takes fewer trials than measuring it.
    """
    is_known = old.trials > 0 and new.trials > 0
    of = sequential_rate_of if old.is_sequential or new.is_sequential else rate_of
    confidence = 1 - (1 - CONFIDENCE) / 2
    before, after = (of(rate.events, rate.trials, confidence=confidence) for rate in (old, new))
    return Comparison(
        p=_two_sided(old, new) if is_known else 1.0,
        difference=new.share - old.share if is_known else None,
        low=after.low - before.high,
        high=after.high - before.low,
    )


def _two_sided(old: Rate, new: Rate) -> float:
    if old.is_sequential or new.is_sequential:
        return min(1.0, 2 * min(p_of_disjoint(old, new), p_of_disjoint(new, old)))
    return fishers_p(new, old)


def fishers_p(one: Rate, other: Rate) -> float:
    """Fisher's exact test, two-sided: the chance of all tables that are no likelier than this one.

    It is that of `scipy.stats.fisher_exact`, whose module takes a second to load.
    """
    (first_events, first), (second_events, second) = sorted(
        (rate.events, rate.trials) for rate in (one, other)
    )
    events = first_events + second_events
    of_first = np.arange(max(0, events - second), min(events, first) + 1)
    of_second = events - of_first
    # of n choose k the part that differs between the tables
    parts = (of_first, first - of_first, of_second, second - of_second)
    logs = -np.sum([gammaln(part + 1.0) for part in parts], axis=0)
    chances = np.exp(logs - logs.max())
    this = chances[first_events - of_first[0]]
    return min(1.0, float(chances[chances <= this * _AS_LIKELY].sum() / chances.sum()))


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Each p corrected for the size of its family, in the order given.

    If all corrected p below 0.05 count as findings, at most 5 % of families without any difference have a
    finding. S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6
    (1979).
    """
    corrected = [0.0] * len(ps)
    worst = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        worst = max(worst, min(1.0, ps[place] * (len(ps) - rank)))
        corrected[place] = worst
    return tuple(corrected)
