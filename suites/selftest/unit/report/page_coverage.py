"""How often each number of the page holds, over thousands of simulated campaigns.

`python -m suites.selftest.unit.report.page_coverage` prints the table of docs/statistics.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import sqrt

import numpy as np
import scipy

from suites.selftest.unit.report.campaigns import play
from suites.selftest.unit.report.natures import Kind, natures_of
from suites.selftest.unit.report.page_numbers import Held, Number, observed, of_comparison
from torture.facts.stats.planning import in_percent
from torture.facts.stats.rates import Rate, printed_bounds, rate_of

CAMPAIGNS = 10_000
_CHANGED = 0.4
"""The rate to which the first cell changes in every second comparison."""
_FIRST_CUTS, _ALL_CUTS = 4, 10
_FEW = 200
"""Fewer numbers say too little about the lowest share."""


@dataclass(slots=True)
class Share:
    """The share of a number's values that hold."""

    held: float = 0.0
    of: int = 0

    def add(self, share: float) -> None:
        """Count one more."""
        self.held += share
        self.of += 1

    @property
    def share(self) -> float:
        """Those that hold."""
        return self.held / self.of

    @property
    def error(self) -> float:
        """The standard error of the simulation."""
        return sqrt(self.share * (1 - self.share) / self.of)


@dataclass(slots=True)
class Coverage:
    """The coverage of every number over campaigns of one kind."""

    kind: Kind
    in_all: dict[Number, Share] = field(default_factory=lambda: defaultdict(Share))
    by_rate: dict[tuple[Number, float | None], Share] = field(
        default_factory=lambda: defaultdict(Share)
    )

    def add(self, held: Held) -> None:
        """Count one number of one campaign."""
        self.in_all[held.number].add(held.share)
        self.by_rate[held.number, held.rate].add(held.share)


def simulate(kind: Kind, campaigns: int, *, seed: int = 1) -> Coverage:
    """Play so many campaigns of a kind, and compare every second one with a run that has changed."""
    coverage = Coverage(kind=kind)
    for number in range(campaigns):
        draw = np.random.default_rng((seed, list(Kind).index(kind), number))
        natures = natures_of(kind, draw)
        campaign = play(kind, natures, draw)
        changed = natures
        if number % 2:
            changed = (replace(natures[0], harm=_CHANGED), *natures[1:])
        later = play(kind, changed, draw)
        for held in (*observed(campaign), *of_comparison(campaign, later)):
            coverage.add(held)
    return coverage


def fault_coverage(of: Callable[[int, int], Rate] = rate_of) -> tuple[float, float]:
    """The lowest coverage of a planted fault's interval, exactly, and that of its lower bound.

    A fault is planted in 4 cuts, and in 6 more if one of these missed it.
    """
    rates = np.linspace(0.005, 0.995, 199)
    missed, below = np.zeros_like(rates), np.zeros_like(rates)
    for first, rest in product(range(_FIRST_CUTS + 1), range(_ALL_CUTS - _FIRST_CUTS + 1)):
        likely = scipy.stats.binom.pmf(first, _FIRST_CUTS, rates)
        if first == _FIRST_CUTS:
            if rest:
                continue
            low, high = printed_bounds(of(first, _FIRST_CUTS))
        else:
            likely = likely * scipy.stats.binom.pmf(rest, _ALL_CUTS - _FIRST_CUTS, rates)
            low, high = printed_bounds(of(first + rest, _ALL_CUTS))
        missed += likely * ((rates < low) | (rates > high))
        below += likely * (rates < low)
    return 1 - float(missed.max()), 1 - float(below.max())


def table(every: Sequence[Coverage]) -> list[str]:
    """The lines of the table: a row per number, a column per kind of campaign."""
    columns = [
        "number",
        *(coverage.kind.name.lower().replace("_", " ") for coverage in every),
        "lowest at one rate",
    ]
    lines = [f"| {' | '.join(columns)} |", "| --- |" + " ---: |" * (len(columns) - 1)]
    for number in Number:
        shares = [coverage.in_all.get(number) for coverage in every]
        if any(shares):
            shown = ["-" if share is None else f"{share.share:.1%}" for share in shares]
            lines.append(f"| {number} | {' | '.join([*shown, _lowest(number, every)])} |")
    return [line.replace("%", " %") for line in lines]


def _lowest(number: Number, every: Sequence[Coverage]) -> str:
    """E.g. `96.2% ± 0.5 (40%)`: the lowest share at one rate, its standard error, and that rate."""
    found = [
        (share.share, rate, share)
        for coverage in every
        for (name, rate), share in coverage.by_rate.items()
        if name is number and share.of >= _FEW
    ]
    if not found:
        return "-"
    _, rate, share = min(found, key=lambda one: one[0])
    where = "mixed" if rate is None else in_percent(rate).replace(" ", "")
    return f"{share.share:.1%} ± {share.error * 100:.1f} ({where})"


def kind_of(name: str) -> Kind:
    """A kind by its name, for the command line."""
    return Kind.__members__[name]


def main() -> None:
    """Print the table, and the coverage of planted faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help="of each kind")
    parser.add_argument("--kinds", nargs="*", type=kind_of, default=list(Kind))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="kinds at a time")
    arguments = parser.parse_args()
    play_all = partial(simulate, campaigns=arguments.campaigns, seed=arguments.seed)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        every = list(pool.map(play_all, arguments.kinds))
    print("\n".join(table(every)))
    interval, bound = fault_coverage()
    print(f"\nplanted faults: interval {interval:.1%}, lower bound {bound:.1%}, exactly")


if __name__ == "__main__":
    main()
