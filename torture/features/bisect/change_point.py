"""Which of several versions is the first that loses, by trials of some of them (pure).

Versions are in their order; from one of them on, each has the bug. A version with the bug loses in an
unknown share of its trials, anything from 0 to 1. So does one without it, by other bugs: as probably
seldom as in any share. Each hypothesis, "this one is the first", is equally probable before the first
trial. Then Bayes' rule gives its probability, and the unknown shares are integrated out
(beta-binomial).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln
from scipy.stats import hypergeom

_RARE = (1.0, 20.0)
_ANY = (1.0, 1.0)
"""Beta distributions of a share: 0.05 on average and mostly less, or anything."""
_AS_RARE = 1 + 1e-9
"""Equal probabilities differ by rounding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """The conclusive trials of one version, and those that lost something."""

    trials: int = 0
    losses: int = 0

    def __add__(self, other: Tried) -> Tried:
        return Tried(trials=self.trials + other.trials, losses=self.losses + other.losses)


def first_probabilities(versions: int, tried: Mapping[int, Tried]) -> list[float]:
    """For each of `versions`, from 0 on, the probability that it is the first with the bug.

    `tried`: the number of a version to its trials. Version 0 is taken not to have the bug, and the last
    one to have it. Raises `ValueError` for fewer than two versions.
    """
    if versions < 2:
        raise ValueError("a first version with a bug has one before it")
    trials, losses = np.zeros(versions), np.zeros(versions)
    for number, own in tried.items():
        trials[number], losses[number] = own.trials, own.losses
    # hypothesis i: the versions before i are without the bug
    trials_before = np.cumsum(trials) - trials
    losses_before = np.cumsum(losses) - losses
    before = np.logaddexp(
        _evidence(losses_before, trials_before, _RARE),
        _evidence(losses_before, trials_before, _ANY),
    )
    logs = before + _evidence(losses.sum() - losses_before, trials.sum() - trials_before, _ANY)
    logs[0] = -np.inf
    shares = np.exp(logs - logs.max())
    return [float(share) for share in shares / shares.sum()]


def _evidence(losses: np.ndarray, trials: np.ndarray, prior: tuple[float, float]) -> np.ndarray:
    """The logarithm of the probability of these outcomes, in this order, over all shares."""
    first, second = prior
    evidence: np.ndarray = betaln(first + losses, second + trials - losses) - betaln(first, second)
    return evidence


def lossy_probability(version: int, probabilities: list[float]) -> float:
    """The probability that a version has the bug: that the first one is it or lies before it."""
    return sum(probabilities[: version + 1])


def to_try_next(probabilities: list[float], untriable: frozenset[int]) -> int | None:
    """The version whose probability of having the bug is nearest to 50 %.

    None where every version that can be tried is known by 99 in 100. The first and the last one are
    never tried.
    """
    best, distance = None, 0.49
    for version in range(1, len(probabilities) - 1):
        own = abs(lossy_probability(version, probabilities) - 0.5)
        if version not in untriable and own < distance:
            best, distance = version, own
    return best


def credible(probabilities: list[float], certainty: float) -> list[int]:
    """The fewest versions one of which is the first one with this probability, in their order."""
    ranked = sorted(range(len(probabilities)), key=lambda number: -probabilities[number])
    chosen: list[int] = []
    while ranked and sum(probabilities[number] for number in chosen) < certainty:
        chosen.append(ranked.pop(0))
    return sorted(chosen)


def differ_p(without: Tried, with_it: Tried) -> float:
    """The probability of ends that differ so much, or more, if they lose alike: Fisher's exact test.

    `without` and `with_it`: the trials of the first version and of the last one. One-sided: only the
    last one may lose more.
    """
    both = without + with_it
    if not without.trials or not with_it.trials:
        return 1.0
    return float(hypergeom.sf(with_it.losses - 1, both.trials, both.losses, with_it.trials))


def unlikeness(tried: Mapping[int, Tried], first: int) -> dict[int, float]:
    """By version, how often chance makes any of them so unlike the others on its side of `first`.

    The model has one share before `first`, and one from there on. A bug that was mended and came back
    has more. These are exact tests, times their number (Bonferroni).
    """
    sides = [[one for one in tried if (one < first) is is_before] for is_before in (True, False)]
    found: dict[int, float] = {}
    for side in sides:
        whole = sum((tried[one] for one in side), Tried())
        for one in (one for one in side if tried[one].trials):
            found[one] = _two_sided(tried[one], whole)
    return {one: min(1.0, p * len(found)) for one, p in found.items()}


def _two_sided(own: Tried, whole: Tried) -> float:
    """The probability of these losses, or any less probable number, if all of a side lose alike."""
    counts = np.arange(own.trials + 1)
    chances = hypergeom.pmf(counts, whole.trials, whole.losses, own.trials)
    return float(chances[chances <= chances[own.losses] * _AS_RARE].sum())
