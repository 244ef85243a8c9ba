"""Before any cut: how many a question needs, and how often `--compare` finds a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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


def plan_versus(first_rate: float, second_rate: float, *, cells: int = 1, lossy: int = 0) -> Size:
    """The sample size with which `--compare` finds one cell that changes from one rate to the other.

    The family has so many cells. Of the others `lossy` lose, at all rates, and the rest stays at the
    first rate. Raises `ValueError` for more of these than there are others.
    """
    if not 0 <= lossy < cells:
        raise ValueError(f"of {counted(cells)} at most {cells - 1} others lose, not {lossy}")
    cuts = cuts_to_distinguish(first_rate, second_rate, cells=cells, lossy=lossy)
    share = in_percent(round(power(cuts, first_rate, second_rate, cells=cells, lossy=lossy), 3))
    among = (
        f", among {counted(cells)} that else stay at {in_percent(first_rate)}" if cells > 1 else ""
    )
    among += f", but {counted(lossy)} of all rates" if lossy else ""
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
