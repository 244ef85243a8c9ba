"""Computes how many cuts a question needs, before any is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy  # loads the slow `stats` only when it is first used

from torture.facts.stats.comparison import SIGNIFICANT, Array, upper_tails
from torture.facts.stats.rates import CONFIDENCE, printed_bounds, rate_of
from torture.facts.stats.sequential import Until, fewest

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


_LOSSES = range(4)
_CUTS_MAX = 10_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """A question in words, and how many cuts of each cell answer it."""

    question: str
    cuts: int
    cells_min: int = 1
    """2 where the question compares two cells."""


def plan_rate(rate: float, confidence: float) -> tuple[Size, ...]:
    """The sample sizes for statements about one rate; raises `ValueError` above the largest size."""
    percent, sure = in_percent(rate), in_percent(confidence)
    steps = [
        Size(
            question=f'to print "at most {percent}" with {sure} confidence, {_losses(losses)}',
            cuts=cuts_below(rate, losses, confidence=confidence),
        )
        for losses in _LOSSES
    ]
    seen = f"to see a loss at all with {sure} probability, if {percent} of cuts lose"
    return (*steps, Size(question=seen, cuts=cuts_to_detect(rate, probability=confidence)))


def plan_until(until: Until) -> Size:
    """The fewest cuts after which `--until` can end a cell with yes, and the price of the looks."""
    cuts, one_look = until.trials_at_best, cuts_of_fixed_size(until)
    ending = "if none loses" if until.is_upper else "if each loses"
    return Size(
        question=(
            f"until '{until}' is answered, {ending}: {cuts / one_look:.2f} times the {one_look} "
            "that suffice if the first look is at the end"
        ),
        cuts=cuts,
    )


def plan_versus(first_rate: float, second_rate: float, *, cells: int = 1) -> Size:
    """The sample size with which `--compare` finds one cell that changes from one rate to the other.

    The family has so many cells; the others stay at the first rate.
    """
    cuts = cuts_to_distinguish(first_rate, second_rate, cells=cells)
    share = in_percent(round(power(cuts, first_rate, second_rate, cells=cells), 3))
    among = (
        f", among {counted(cells)} that else stay at {in_percent(first_rate)}" if cells > 1 else ""
    )
    return Size(
        question=(
            f"to distinguish {in_percent(first_rate)} from {in_percent(second_rate)} in one cell of two "
            f"runs{among}: --compare finds it in {share} of runs (Fisher's one-sided test at "
            f"{in_percent(SIGNIFICANT)}, corrected for the family)"
        ),
        cuts=cuts,
        cells_min=2,
    )


def cuts_below(rate: float, losses: int, *, confidence: float = CONFIDENCE) -> int:
    """The fewest cuts after which the printed interval ends at `rate` or below, with so many losses.

    Raises `ValueError` above ten million cuts.
    """

    def is_enough(cuts: int) -> bool:
        return printed_bounds(rate_of(losses, cuts, confidence=confidence))[1] <= rate

    return fewest(is_enough, above=losses, at_most=_CUTS_MAX)


def cuts_to_detect(rate: float, *, probability: float) -> int:
    """The fewest cuts that show a loss with this probability, if `rate` of cuts lose."""
    return max(1, math.ceil(math.log1p(-probability) / math.log1p(-rate)))


def rate_detected(cuts: int, *, probability: float) -> float:
    """The rate of losses at which so many cuts show at least one loss with this probability."""
    return -math.expm1(math.log1p(-probability) / cuts)


def cuts_of_fixed_size(until: Until) -> int:
    """`until.trials_at_best` for a fixed number of cuts and one look, to compare prices."""
    limit = until.limit if until.is_upper else 1 - until.limit
    return fewest(lambda cuts: rate_of(0, cuts).high < limit, above=0, at_most=_CUTS_MAX)


def in_percent(share: float) -> str:
    """E.g. `1 %`, with the digits of the question."""
    return f"{share * 100:.6g} %"


def counted(cells: int) -> str:
    """E.g. `1 cell`, `12 cells`."""
    return f"{cells} cells" if cells > 1 else "1 cell"


def _losses(count: int) -> str:
    return {0: "without a loss", 1: "with 1 loss"}.get(count, f"with {count} losses")
