"""Rates with their exact intervals, and their printed form: 0 of 300 still means up to 1.23 %."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

from scipy.special import betaincinv

CONFIDENCE = 0.95

INTERVALS_KEPT = 2**16
"""So many intervals are computed once: most cells of a run have one number of cuts and few losses."""

_DIGITS = 3
"""Significant digits of a printed bound below 10 %; higher bounds are whole numbers."""

_WHOLE_FROM_PERCENT = 10

_NEARLY_ALL_PERCENT = 99.5
"""Above this share rounding to whole numbers would print 100 %."""

_STOPPED = " for a stopped run"
"""Behind a wider interval, which holds whenever one stops."""

_EXACT = Context(prec=1000)
"""Holds every digit of a float."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """`events` of `trials`, with the interval of the true rate."""

    events: int
    trials: int
    low: float
    high: float
    is_sequential: bool = False
    """Whether the interval holds however often one looked before stopping; otherwise the number of trials
    was fixed before.
    """
    later: int = 0
    """The events that only a later try of their trials had: the lower bound is without them."""

    @property
    def drawn(self) -> int:
        """The events of first tries, which no rerun can change."""
        return self.events - self.later

    @property
    def share(self) -> float:
        """The observed rate; raises `ZeroDivisionError` on no trials."""
        return self.events / self.trials


def rate_of(events: int, trials: int, *, confidence: float = CONFIDENCE, later: int = 0) -> Rate:
    """The rate with its exact two-sided interval; without trials that is 0 to 1.

    Clopper and Pearson, Biometrika 26 (1934). It covers the true rate at least as often as stated, at
    every rate and number of trials. That number must not depend on the outcomes. Of the events, `later`
    are those of later tries alone.
    """
    tail = (1 - confidence) / 2
    low, high = _exact(events - later, trials, tail)[0], _exact(events, trials, tail)[1]
    return Rate(events=events, trials=trials, low=low, high=high, later=later)


@lru_cache(maxsize=INTERVALS_KEPT)
def _exact(events: int, trials: int, tail: float) -> tuple[float, float]:
    low = 0.0 if events == 0 else float(betaincinv(events, trials - events + 1, tail))
    high = 1.0 if events == trials else float(betaincinv(events + 1, trials - events, 1 - tail))
    return low, high


def in_words(rate: Rate) -> str:
    """E.g. `3/20 15 % [3.2-38 %]`; a dash where nothing was conclusive."""
    if rate.trials == 0:
        return "-"
    share = f"{rate.events}/{rate.trials} {share_in_words(rate.share)}"
    return f"{share} [{interval_in_words(rate)}]"


def counts_in_words(rate: Rate) -> str:
    """E.g. `3/20 15 %`, for tables with the greatest difference first.

    There the interval of a first rate alone would cover it too seldom.
    """
    return in_words(rate).partition(" [")[0]


def interval_in_words(rate: Rate) -> str:
    """E.g. `3.2-38 %`: rounded outward, so that the printed interval covers the exact one.

    Rounding to the nearest moves some bounds inward. The printed interval of 1000 trials would then
    nearly always miss rates just beside 0 or 1. A wider interval says why it is wider.
    """
    bounds = f"{_outward(rate.low, ROUND_FLOOR)}-{_outward(rate.high, ROUND_CEILING)} %"
    return f"{bounds}{_widened(rate)}"


def high_in_words(rate: Rate) -> str:
    """The upper end as in `interval_in_words`, e.g. `12 %`, or `17 % for a stopped run`."""
    return f"{bound_in_words(rate.high)}{_widened(rate)}"


def _widened(rate: Rate) -> str:
    return _STOPPED if rate.is_sequential else ""


def bound_in_words(share: float) -> str:
    """An upper bound, e.g. `1.23 %`: rounded up, as in an interval."""
    return f"{_outward(share, ROUND_CEILING)} %"


def printed_bounds(rate: Rate) -> tuple[float, float]:
    """The bounds as `interval_in_words` prints them, as shares."""
    low, high = interval_in_words(rate).removesuffix(_widened(rate)).removesuffix(" %").split("-")
    return float(Decimal(low) / 100), float(Decimal(high) / 100)


def share_in_words(share: float) -> str:
    """E.g. `37 %`: rounded to the nearest, and `0 %` or `100 %` only for exactly 0 or 1."""
    percent = share * 100
    decimals = 0
    if _NEARLY_ALL_PERCENT <= percent < 100:
        decimals = _decimals(100 - percent, 1)
    elif 0 < percent < _WHOLE_FROM_PERCENT:
        decimals = _decimals(percent, 2)
    return f"{_plain(Decimal(f'{percent:.{decimals}f}'))} %"


def _outward(share: float, rounding: str) -> str:
    """A share in percent, rounded in one direction."""
    percent = Decimal(share).scaleb(2, _EXACT)
    decimals = 0
    if 0 < percent < _WHOLE_FROM_PERCENT:
        decimals = _decimals(float(percent), _DIGITS)
    return _plain(percent.quantize(Decimal(1).scaleb(-decimals), rounding, _EXACT))


def _decimals(value: float, digits: int) -> int:
    """How many decimals show this many significant digits; `value` is above 0."""
    return max(0, digits - 1 - math.floor(math.log10(value)))


def _plain(value: Decimal) -> str:
    """The number without an exponent and without trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
