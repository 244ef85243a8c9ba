"""Computes how often `--compare` finds a cell whose rate changed, before any cut is made."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy  # loads the slow `stats` only when it is first used

from torture.facts.stats.comparison import SIGNIFICANT
from torture.facts.stats.families import Array, upper_tails
from torture.facts.stats.sequential import fewest

POWER = 0.8
PAIR_MAX = 20_000
"""The largest size of each of two cells that is computed: weeks of cuts."""

_NEGLIGIBLE = 1e-9
"""The probability of counts too rare to consider."""
_HALVINGS = 40


def cuts_to_distinguish(first_rate: float, second_rate: float, *, cells: int = 1) -> int:
    """Cuts in each cell of two runs with which `--compare` finds a change 4 times out of 5.

    A few fewer may suffice: counts are whole, so more cuts do not always mean more power. Raises
    `ValueError` for equal rates, and above `PAIR_MAX`.
    """
    if first_rate == second_rate:
        raise ValueError("two equal rates cannot be distinguished")
    return fewest(
        lambda cuts: power(cuts, first_rate, second_rate, cells=cells) >= POWER,
        above=1,
        at_most=PAIR_MAX,
    )


def power(cuts: int, first_rate: float, second_rate: float, *, cells: int = 1) -> float:
    """How often `--compare` finds one cell that changes from the first rate to the second.

    Each cell has `cuts` in both runs; the others of the family stay at the first rate. Their cost is
    random, and counts here by its mean. With one cell the result is exact but for counts rarer than one
    in a billion, which count as misses.
    """
    level = _level(cuts, first_rate, others=cells - 1)
    counts = np.arange(cuts + 1)
    low, high = (
        scipy.stats.binom.pmf(counts, cuts, rate) for rate in sorted((first_rate, second_rate))
    )
    found = 0.0
    for events in _likely_totals(cuts, first_rate, second_rate):
        more = np.arange(max(0, events - cuts), min(events, cuts) + 1)
        significant = more[upper_tails(cuts, cuts, events) < level]
        found += float(high[significant] @ low[events - significant])
    return found


def _level(cuts: int, rate: float, *, others: int) -> float:
    """The p below which a cell is a finding, where so many others stay at a rate."""
    if others == 0:
        return SIGNIFICANT
    chances = scipy.stats.binom.pmf(np.arange(2 * cuts + 1), 2 * cuts, rate)
    families = [
        (float(chances[events]), upper_tails(cuts, cuts, events)[::-1])
        for events in _likely_totals(cuts, rate, rate)
    ]
    cost = partial(_mean_cost, families)
    low, high = 0.0, SIGNIFICANT
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle + others * cost(middle) < SIGNIFICANT:
            low = middle
        else:
            high = middle
    return high


def _mean_cost(families: list[tuple[float, Array]], p: float) -> float:
    """The mean of the largest attainable p up to this one, over totals of events."""
    cost = 0.0
    for chance, attainable in families:
        number = int(np.searchsorted(attainable, p, side="right"))
        cost += chance * float(attainable[number - 1]) if number else 0.0
    return cost


def _likely_totals(cuts: int, first_rate: float, second_rate: float) -> range:
    """Totals of both cells' events that are not too rare to matter."""
    low = sum(scipy.stats.binom.ppf(_NEGLIGIBLE, cuts, rate) for rate in (first_rate, second_rate))
    high = sum(scipy.stats.binom.isf(_NEGLIGIBLE, cuts, rate) for rate in (first_rate, second_rate))
    return range(max(1, int(low)), min(2 * cuts - 1, int(high)) + 1)
