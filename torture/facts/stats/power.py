"""Computes how often `--compare` finds a cell whose rate changed, before any cut is made."""

from __future__ import annotations

from collections.abc import Sequence

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
_LEVEL_MIN = 1e-9
_LEVELS = 400
"""A cell with a smaller p is found as often as one with the least of these."""
_FAMILIES = 1000
"""So many families are drawn."""


def lossy_rates(cells: int) -> tuple[float, ...]:
    """The rates of so many cells that lose, spread evenly from 0 to 1: e.g. 0.25 and 0.75."""
    return tuple((place + 0.5) / cells for place in range(cells))


def cuts_to_distinguish(
    first_rate: float, second_rate: float, *, cells: int = 1, lossy: int = 0
) -> int:
    """Cuts in each cell of two runs with which `--compare` finds a change 4 times out of 5.

    A few fewer may suffice: counts are whole, so more cuts do not always mean more power. Raises
    `ValueError` for equal rates, and above `PAIR_MAX`.
    """
    if first_rate == second_rate:
        raise ValueError("two equal rates cannot be distinguished")
    return fewest(
        lambda cuts: power(cuts, first_rate, second_rate, cells=cells, lossy=lossy) >= POWER,
        above=1,
        at_most=PAIR_MAX,
    )


def power(
    cuts: int, first_rate: float, second_rate: float, *, cells: int = 1, lossy: int = 0
) -> float:
    """How often `--compare` finds one cell that changes from the first rate to the second.

    Each cell has `cuts` in both runs. Of the others of the family, `lossy` have `lossy_rates`, and the
    rest stays at the first rate. Their cost is random: families of them are drawn, always the same ones.
    With one cell the result is exact but for counts rarer than one in a billion, which count as misses.
    """
    others = [*[first_rate] * (cells - 1 - lossy), *lossy_rates(lossy)]
    levels, shares = _shares_found(cuts, others)
    counts = np.arange(cuts + 1)
    low, high = (
        scipy.stats.binom.pmf(counts, cuts, rate) for rate in sorted((first_rate, second_rate))
    )
    found = 0.0
    for events in _likely_totals(cuts, first_rate, second_rate):
        more = np.arange(max(0, events - cuts), min(events, cuts) + 1)
        ps = upper_tails(cuts, cuts, events)
        likely = high[more] * low[events - more] * (ps < SIGNIFICANT)
        found += float(likely @ np.interp(ps, levels, shares))
    return found


def _shares_found(cuts: int, others: Sequence[float]) -> tuple[Array, Array]:
    """Some values of p, and how often a cell with each is a finding, where others stay at these rates."""
    levels = np.geomspace(_LEVEL_MIN, np.nextafter(SIGNIFICANT, 0), _LEVELS)
    totals = sorted({total for rate in set(others) for total in _likely_totals(cuts, rate, rate)})
    cost_of_total = np.zeros((2 * cuts + 1, _LEVELS))
    for total in totals:
        attainable = np.concatenate([[0.0], upper_tails(cuts, cuts, total)[::-1]])
        cost_of_total[total] = attainable[np.searchsorted(attainable, levels, side="right") - 1]
    draw = np.random.default_rng(1)
    costs = np.zeros((_FAMILIES, _LEVELS))
    for rate in others:
        costs += cost_of_total[draw.binomial(2 * cuts, rate, size=_FAMILIES)]
    return levels, np.asarray((levels + costs < SIGNIFICANT).mean(axis=0))


def _likely_totals(cuts: int, first_rate: float, second_rate: float) -> range:
    """Totals of both cells' events that are not too rare to matter."""
    low = sum(scipy.stats.binom.ppf(_NEGLIGIBLE, cuts, rate) for rate in (first_rate, second_rate))
    high = sum(scipy.stats.binom.isf(_NEGLIGIBLE, cuts, rate) for rate in (first_rate, second_rate))
    return range(max(1, int(low)), min(2 * cuts - 1, int(high)) + 1)
