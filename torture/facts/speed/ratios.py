"""Ratios of measured figures, with intervals by the bootstrap over rounds (pure)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap

_CONFIDENCE = 0.95
_RESAMPLES = 2000
_SEED = 34
"""A page that is written twice has the same figures."""
ROUNDS_MIN = 3
"""Fewer rounds give no interval: their resamples are too much alike."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A geometric mean of positive figures, and its 95 % interval; None where rounds are too few."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def width(self) -> float:
        """The interval's upper end by its lower one; infinite without an interval."""
        return self.high / self.low if self.low and self.high else math.inf

    def is_within(self, low: float, high: float) -> bool:
        """Whether the estimate lies there."""
        return low <= self.value <= high


def mean_of(figures: Sequence[float]) -> Estimate:
    """The geometric mean of one figure over rounds. Raises `ValueError` for one that is not positive."""
    return _estimate(np.array(figures, dtype=float))


def ratio_of(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """The ratio of two figures, each measured in the same rounds.

    The rounds are resampled whole, so a slow round of the host touches both figures alike. Raises
    `ValueError` for different numbers of rounds, or for a figure that is not positive.
    """
    if len(over) != len(under):
        raise ValueError(f"{len(over)} rounds against {len(under)}")
    _must_be_positive(under)
    return _estimate(np.array(over, dtype=float) / np.array(under, dtype=float))


def _must_be_positive(figures: Sequence[float]) -> None:
    if not figures or not all(figure > 0 and math.isfinite(figure) for figure in figures):
        raise ValueError(f"no positive figures: {list(figures)}")


def _estimate(figures: np.ndarray) -> Estimate:
    _must_be_positive(figures.tolist())
    logs = np.log(figures)
    value = float(np.exp(logs.mean()))
    if len(figures) < ROUNDS_MIN:
        return Estimate(value=value)
    if np.ptp(logs) == 0:
        return Estimate(value=value, low=value, high=value)
    found = bootstrap(
        (logs,), np.mean, confidence_level=_CONFIDENCE, n_resamples=_RESAMPLES, method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval  # fmt: skip
    return Estimate(value=value, low=float(np.exp(found.low)), high=float(np.exp(found.high)))
