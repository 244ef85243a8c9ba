"""The difference of two rates; `torture.facts.stats.families` tests whether there is one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from torture.facts.stats.rates import CONFIDENCE, INTERVALS_KEPT, Rate
from torture.facts.stats.sequential import with_confidence

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
