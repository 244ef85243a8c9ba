"""Rates that may be looked at after every trial, and the question that ends a cell's trials.

A fixed-n interval is wrong too often if one looks after each trial and stops when the interval pleases.
Each look is another chance of an error. With endless looking a 95 % interval of Clopper and Pearson
misses the true rate with certainty. The correction here: for every rate p0 a test martingale

    M_n(p0) = 1/p0 * integral over q from 0 to p0 of L_n(q) / L_n(p0),  L_n(p) = p^k (1-p)^(n-k),

is the evidence against "the rate is p0 or more" after k events in n trials. Under every such rate each
ratio L(q)/L(p0) with q < p0 is expected not to grow. The same holds for their mean. So it ever reaches
40 with a probability of at most 1/40 (Ville's inequality). M grows with p0, and the upper bound is the
rate where it is 40. So all rates from the upper bound on are excluded at once, with an error of at most
2.5 %, whenever one stops. The lower bound exchanges events and non-events; together they have 95 %.

The price: excluding rates of 1 % and more takes 535 trials without a loss. An interval for a number fixed
before takes 368, so the factor is 1.45 (`tools/plan` computes it).

Sources:

- J. Ville, Etude critique de la notion de collectif (1939);
- H. Robbins, "Statistical methods related to the law of the iterated logarithm", Ann. Math. Statist. 41
  (1970);
- S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
  sequences", Ann. Statist. 49 (2021);
- I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", J. R. Statist.
  Soc. B 86 (2024).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Self

from scipy.special import betainc, betaln

from torture.facts.stats.rates import CONFIDENCE, INTERVALS_KEPT, Rate, rate_of

LIMIT_MIN = 0.0001
"""The smallest limit of a question (and 1 less this the largest): it takes at least 54,000 trials."""

_HALVINGS = 60
_QUESTION = re.compile(r"(?:(loss|corruption)\s+)?(upper|lower)\s*([<>])\s*(\S+)")
_EXAMPLES = "say e.g. 'upper<0.01' or 'corruption lower>0.5'"


def sequential_rate_of(
    events: int, trials: int, *, confidence: float = CONFIDENCE, later: int = 0
) -> Rate:
    """The rate with an interval that holds whenever one stops; without trials that is 0 to 1.

    `later` as in `torture.facts.stats.rates.rate_of`.
    """
    return Rate(
        events=events,
        trials=trials,
        low=1 - _upper(trials - events + later, trials, confidence),
        high=_upper(events, trials, confidence),
        is_sequential=True,
        later=later,
    )


def with_confidence(rate: Rate, confidence: float) -> Rate:
    """The same counts with the interval of another confidence."""
    of = sequential_rate_of if rate.is_sequential else rate_of
    return of(rate.events, rate.trials, confidence=confidence, later=rate.later)


def together(rates: Sequence[Rate]) -> Rate:
    """The rate of several cells together: that of the mean over them, weighted by their trials.

    Its interval holds whenever one stops if that of one of them does.
    """
    of = sequential_rate_of if any(rate.is_sequential for rate in rates) else rate_of
    return of(
        sum(rate.events for rate in rates),
        sum(rate.trials for rate in rates),
        later=sum(rate.later for rate in rates),
    )


def is_below(events: int, trials: int, limit: float, *, confidence: float = CONFIDENCE) -> bool:
    """Whether the rate is below `limit`, with half of the error that `confidence` leaves.

    It is when the upper bound of `sequential_rate_of` is.
    """
    return _log_evidence(events, trials, limit) > math.log(2 / (1 - confidence))


def is_above(events: int, trials: int, limit: float, *, confidence: float = CONFIDENCE) -> bool:
    """Whether the rate is above `limit`; see `is_below`."""
    return is_below(trials - events, trials, 1 - limit, confidence=confidence)


@lru_cache(maxsize=INTERVALS_KEPT)
def p_of_disjoint(old: Rate, new: Rate) -> float:
    """The one-sided p of "the new rate is higher", valid whenever either of the two stops.

    It is the least error at which the two intervals of `sequential_rate_of` are disjoint, the new one
    above. Both then exclude a common rate, each with half of the error.
    """
    if old.drawn * new.trials >= new.drawn * old.trials:
        return 1.0
    low, high = old.drawn / old.trials, new.drawn / new.trials
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = _log_evidence(old.drawn, old.trials, middle)
        above = _log_evidence(new.trials - new.drawn, new.trials, 1 - middle)
        low, high = (middle, high) if below < above else (low, middle)
    return min(1.0, 2 * math.exp(-min(below, above)))


def _log_evidence(events: int, trials: int, rate: float) -> float:
    """The logarithm of M(rate), for 0 < rate < 1."""
    if events >= trials * rate:
        return -math.inf  # every ratio is at most 1; the beta function may underflow
    others = trials - events
    area = betaln(events + 1, others + 1) + math.log(betainc(events + 1, others + 1, rate))
    return float(area - (events + 1) * math.log(rate) - others * math.log1p(-rate))


@lru_cache(maxsize=INTERVALS_KEPT)
def _upper(events: int, trials: int, confidence: float) -> float:
    """The least excluded rate, approached from above; 1 when none is excluded."""
    if events == trials:
        return 1.0
    low, high = events / trials, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        if is_below(events, trials, middle, confidence=confidence):
            high = middle
        else:
            low = middle
    return high


def fewest(is_enough: Callable[[int], bool], *, above: int, at_most: int) -> int:
    """The least number above `above` that is enough, found by doubling and halving.

    Raises `ValueError` when `at_most` is not enough.
    """
    few, enough = above, above + 1
    while not is_enough(enough):
        if enough == at_most:
            raise ValueError(f"this question needs more than {at_most:,} cuts of a cell")
        few, enough = enough, min(2 * enough, at_most)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough


class Answer(StrEnum):
    """The answer to a question."""

    YES = "yes"
    NO = "no"


class Counted(StrEnum):
    """The rate that a question is about, among conclusive trials."""

    LOSS = "loss"
    """An acknowledged write is missing, or the verdict is worse than consistent but old."""
    CORRUPTION = "corruption"
    """The verdict is worse than consistent but old."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Until:
    """A question that ends a cell's trials: whether its rate is below, or above, a limit."""

    counted: Counted
    is_upper: bool
    """Whether it asks for an upper bound below the limit; otherwise for a lower bound above it."""
    limit: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse e.g. `upper<0.01`, `lower > 0.5`, `corruption upper<0.01`.

        Raises `ValueError` that names the error and shows a correct question.
        """
        found = _QUESTION.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"cannot read the question {text!r}; {_EXAMPLES}")
        counted, bound, sign, number = found.groups()
        if (bound, sign) not in {("upper", "<"), ("lower", ">")}:
            right = "upper<" if bound == "upper" else "lower>"
            raise ValueError(f"ask '{right}', not '{bound}{sign}'; {_EXAMPLES}")
        try:
            limit = float(number)
        except ValueError:
            raise ValueError(f"{number!r} is no rate; {_EXAMPLES}") from None
        if not LIMIT_MIN <= limit <= 1 - LIMIT_MIN:
            raise ValueError(
                f"{number} is not between {LIMIT_MIN} and {1 - LIMIT_MIN}; {_EXAMPLES}"
            )
        return cls(counted=Counted(counted or Counted.LOSS), is_upper=bound == "upper", limit=limit)

    def __str__(self) -> str:
        bound = "upper<" if self.is_upper else "lower>"
        return f"{self.counted} {bound}{self.limit}"

    def answer(self, events: int, trials: int) -> Answer | None:
        """The answer after so many events; None while the limit is inside the interval."""
        if is_below(events, trials, self.limit):
            return Answer.YES if self.is_upper else Answer.NO
        if is_above(events, trials, self.limit):
            return Answer.NO if self.is_upper else Answer.YES
        return None

    @property
    def trials_at_best(self) -> int:
        """The fewest trials that answer yes: without any event, or with events only for `lower>`."""
        return fewest(
            lambda trials: self.answer(0 if self.is_upper else trials, trials) is Answer.YES,
            above=0,
            at_most=round(10 / LIMIT_MIN),  # 5.4 / LIMIT_MIN suffice
        )
