"""Which of several versions is the first that loses, by trials of some of them (pure).

Versions are in their order; from one of them on, each has the bug. A version with the bug loses in an
unknown share of its trials, anything from 0 to 1. One without it loses rarely: any other bug of it is in
all versions. Each hypothesis, "this one is the first", is equally probable before the first trial. Then
Bayes' rule gives its probability, and the unknown shares are integrated out (beta-binomial).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln

_RARE = (1.0, 20.0)
"""The beta distribution of the share of a version without the bug: 0.05 on average, mostly less."""
_ANY = (1.0, 1.0)


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
    logs = _evidence(losses_before, trials_before, _RARE) + _evidence(
        losses.sum() - losses_before, trials.sum() - trials_before, _ANY
    )
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
    """The version whose trials tell most: with the bug as probably as without it.

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


def shared_probability(without: Tried, with_it: Tried) -> float:
    """The probability that both ends have the bug, or neither: that their shares do not differ.

    `without` and `with_it`: the trials of the first version and of the last one.
    """
    both = without + with_it
    ends = [(without, _RARE), (with_it, _ANY)]
    differ = sum(_evidence_of(own, prior) for own, prior in ends)
    return float(1 / (1 + np.exp(differ - _evidence_of(both, _ANY))))


def _evidence_of(own: Tried, prior: tuple[float, float]) -> float:
    return float(_evidence(np.array(own.losses), np.array(own.trials), prior))
