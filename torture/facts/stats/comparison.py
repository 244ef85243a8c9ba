"""The difference of two rates, and of many cells of two runs at once.

In a family each cell has a one-sided p: that of Fisher's exact test, conditional on the cell's total of
events. Its attainable values are few. 10 cuts each without any event in both runs attain only 1. Holm's
correction charges each p for every cell of the family, also for cells that cannot raise a false alarm.
One disaster among 40 cells then goes unseen. Here a cell costs what it can contribute. Each p is
corrected to a sum over the cells that are not rejected yet: of each the largest attainable p up to it.
A cell whose smallest attainable p exceeds the level costs nothing, as in Tarone's method. At most 5 %
of families without any difference have a finding. The same holds for the cells without a difference
among others.

A run that stopped when its question was answered has no fixed number of trials, and Fisher's test is
wrong for it. Its p is the error at which the two anytime-valid intervals become disjoint. It attains
any value.

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

from torture.facts.stats.rates import CONFIDENCE, INTERVALS_KEPT, Rate
from torture.facts.stats.sequential import p_of_disjoint, with_confidence

SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A new rate compared with an old one."""

    difference: float | None
    """New share less old share; None when one side has no trials."""
    low: float
    high: float
    """The 95 % interval of the difference of the true rates, which holds for a whole table at once."""


@lru_cache(maxsize=INTERVALS_KEPT)
def compare(old: Rate, new: Rate, *, of: int = 2) -> Comparison:
    """Compare two rates by their counts; with no trials on one side any difference is possible.

    The interval: all `of` rates of a table are in their own exact intervals at once, with at least 95 %
    confidence. Of two rates these have 97.5 % each. So each difference is between the farthest ends
    (Bonferroni). That holds at all rates and sizes, also when two runs drew the same trials. It
    holds for every row, so also for the one with the greatest difference.

    MOVER (Newcombe 1998; Zou and Donner 2008) with exact 95 % intervals is shorter. But it covered only
    90.6 % at 1 and 1 trials and 92.8 % at 300 and 300, for rates near 0 and 1.

    Where one of the two runs stopped at an answer, the interval is anytime-valid.

    The interval may include 0 where the test is significant. The test asks whether there is a difference,
    which takes fewer trials than measuring it.
    """
    is_known = old.trials > 0 and new.trials > 0
    confidence = 1 - (1 - CONFIDENCE) / of
    before, after = (with_confidence(rate, confidence) for rate in (old, new))
    return Comparison(
        difference=new.share - old.share if is_known else None,
        low=after.low - before.high,
        high=after.high - before.low,
    )


Array = npt.NDArray[np.float64]

_ROUNDING = 1 + 1e-9
"""Two equal p from different sums of floats differ by less than this factor."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OneSided:
    """The one-sided test of a cell: whether its new rate is higher."""

    p: float
    attainable: Array | None
    """All values that its p can have, ascending, given its total of events; None for any value."""

    def most_up_to(self, ps: Array) -> Array:
        """The probability that the cell's p is at most each of `ps`, if the rates are equal."""
        if self.attainable is None:
            return ps
        numbers = np.searchsorted(self.attainable, ps * _ROUNDING, side="right")
        return np.where(numbers, self.attainable[numbers - 1], 0.0)


def one_sided(old: Rate, new: Rate) -> OneSided:
    """Test whether the new rate is higher, by first tries; both must have trials."""
    if old.is_sequential or new.is_sequential:
        return OneSided(p=p_of_disjoint(old, new), attainable=None)
    events = old.drawn + new.drawn
    tails = _cached_tails(old.trials, new.trials, events)
    p = float(tails[new.drawn - max(0, events - old.trials)])
    return OneSided(p=p, attainable=tails[::-1])


def corrected(tests: Sequence[OneSided]) -> tuple[float, ...]:
    """Each p corrected for its family, in the order given; below 0.05 it is a finding."""
    order = sorted(range(len(tests)), key=lambda place: tests[place].p)
    ps = np.array([tests[place].p for place in order])
    sums = np.zeros(len(tests))
    for rank, place in enumerate(order):
        # a test counts in the sums of all that are rejected no later
        sums[: rank + 1] += tests[place].most_up_to(ps[: rank + 1])
    result = np.empty(len(tests))
    result[order] = np.minimum(1.0, np.maximum.accumulate(sums))
    return tuple(result.tolist())


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
