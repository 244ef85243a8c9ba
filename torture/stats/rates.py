"""Rates with their exact intervals: 0 of 300 still means up to 1.23 %."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binomtest

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """`events` of `trials`, with the interval of the rate behind it."""

    events: int
    trials: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The observed rate; raises `ZeroDivisionError` on no trials."""
        return self.events / self.trials


def rate_of(events: int, trials: int) -> Rate:
    """The rate with its exact two-sided 95 % interval (Clopper-Pearson); no trials: anything is possible."""
    if trials == 0:
        return Rate(events=0, trials=0, low=0.0, high=1.0)
    interval = binomtest(events, trials).proportion_ci(CONFIDENCE, method="exact")
    return Rate(events=events, trials=trials, low=float(interval.low), high=float(interval.high))
