"""Computes how many cuts a question needs, before any is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torture.facts.stats.comparison import SIGNIFICANT
from torture.facts.stats.power import cuts_to_distinguish, power
from torture.facts.stats.rates import CONFIDENCE, printed_bounds, rate_of
from torture.facts.stats.sequential import Until, fewest

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
