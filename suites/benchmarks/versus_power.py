"""Simulated comparisons of two runs: how often they find a change, and accuse a sound cell.

`python -m suites.benchmarks.versus_power` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from torture.facts.stats.comparison import SIGNIFICANT, corrected, one_sided
from torture.facts.stats.planning import lossy_rates, power
from torture.facts.stats.rates import Rate, rate_of
from torture.facts.stats.sequential import Until, sequential_rate_of

SEEDS = 1000
LOSSY = lossy_rates(10)
"""The rates of cells in which theory allows a loss."""
CHANGES = ((10, 0.0, 0.6), (24, 0.0, 0.2), (24, 0.0, 0.6), (24, 0.1, 0.6))
"""Cuts, and the rate from which and to which the cell changes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """The true rates of the cells that do not change, beside the one that does."""

    words: str
    others: Sequence[float]
    lossy: int = 0
    """How many of these have the rates of `lossy_rates`."""


FAMILIES = (
    Family(words="39 cells that lose nothing", others=[0.0] * 39),
    Family(words="35 of these, 4 that lose", others=[0.0] * 35 + list(lossy_rates(4)), lossy=4),
    Family(words="29 of these, 10 that lose", others=[0.0] * 29 + list(LOSSY), lossy=10),
)
ALONE = Family(words="none", others=())


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Shares of all simulated comparisons."""

    power: float
    """Those that find the cell that changed."""
    false_alarms: float
    """Those that find another cell."""


def simulate(family: Family, *, old: float, new: float, cuts: int, seeds: int = SEEDS) -> Found:
    """Compare so many pairs of runs; the first cell changes from `old` to `new`."""
    rates = np.array([[old, *family.others], [new, *family.others]])
    hits = alarms = 0
    for seed in range(seeds):
        counts = np.random.default_rng(seed).binomial(cuts, rates)
        worse = [
            place
            for place, p in enumerate(_ps(counts, cuts))
            if p < SIGNIFICANT and counts[1, place] > counts[0, place]
        ]
        hits += 0 in worse
        alarms += any(place > 0 for place in worse)
    return Found(power=hits / seeds, false_alarms=alarms / seeds)


def predicted(family: Family, *, old: float, new: float, cuts: int) -> float:
    """The share of comparisons that find the change, as `tools/plan` predicts it for a family.

    There the cells that do not lose stay at the first rate; here they lose nothing. So cells that lose
    nothing are left out of the prediction: they cost nothing.
    """
    return power(cuts, old, new, cells=1 + family.lossy, lossy=family.lossy)


def _ps(counts: npt.NDArray[np.int64], cuts: int) -> tuple[float, ...]:
    pairs = [(_rate(before, cuts), _rate(after, cuts)) for before, after in counts.T]
    return corrected([one_sided(before, after) for before, after in pairs])


def _fishers_p(old: Rate, new: Rate) -> float:
    table = [[rate.events, rate.trials - rate.events] for rate in (old, new)]
    return float(scipy.stats.fisher_exact(np.array(table)).pvalue)


def _rate(events: int, trials: int) -> Rate:
    return rate_of(int(events), trials)


def simulate_stopped(old: float, new: float, *, seeds: int = SEEDS) -> tuple[float, float]:
    """The shares of pairs of runs with `--until` that differ: by `--compare`, and by Fisher's test.

    Each run has one cell. A pair differs where either direction is significant.
    """
    now = fishers = 0
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        before, after = _stopped(draw, old), _stopped(draw, new)
        now += min(one_sided(before, after).p, one_sided(after, before).p) < SIGNIFICANT
        fixed = [rate_of(rate.events, rate.trials) for rate in (before, after)]
        fishers += _fishers_p(*fixed) < SIGNIFICANT
    return now / seeds, fishers / seeds


def _stopped(draw: np.random.Generator, rate: float) -> Rate:
    """A run that ends with its answer, or after 200 cuts."""
    question, events = Until.parse("upper<0.2"), 0
    for trials in range(1, 201):
        events += int(draw.random() < rate)
        if question.answer(events, trials) is not None:
            break
    return sequential_rate_of(events, trials)


def main() -> None:
    """Print both tables."""
    print("| other cells | cuts | change | found | tools/plan predicts | another cell accused |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for family in (ALONE, *FAMILIES):
        for cuts, old, new in CHANGES:
            now = simulate(family, old=old, new=new, cuts=cuts)
            print(
                f"| {family.words} | {cuts} | {old:.0%} to {new:.0%} | {now.power:.0%} "
                f"| {predicted(family, old=old, new=new, cuts=cuts):.0%} "
                f"| {now.false_alarms:.1%} |".replace("%", " %"),
                flush=True,
            )
    print("\n| true rates | differ by --compare | differ by Fisher's test |")
    print("| --- | ---: | ---: |")
    for old, new in ((0.05, 0.05), (0.2, 0.2), (0.4, 0.4), (0.05, 0.3), (0.02, 0.5)):
        now_differ, fishers = simulate_stopped(old, new)
        words = f"{old:.0%} and {new:.0%}"
        print(f"| {words} | {now_differ:.1%} | {fishers:.1%} |".replace("%", " %"))


if __name__ == "__main__":
    main()
