"""How often each number of the page holds, over thousands of simulated campaigns.

`python -m suites.benchmarks.page_coverage` prints the table of docs/statistics.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from suites.benchmarks.campaigns import Campaign, Kind, figures_of, natures_of, play, truths_of
from torture.facts.stats.planning import in_percent
from torture.facts.stats.rates import Rate, bound_in_words, printed_bounds
from torture.report.figures.answer import answer, fastest_safe
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.pairs import Pair, compared, neighbours, same_cells

CAMPAIGNS = 10_000
_CHANGED = 0.4
"""The rate to which the first cell changes in every second comparison."""
_FEW = 200
"""Fewer numbers say too little about the lowest share."""
Truths = Mapping[str, Mapping[str, float]]
"""The true rates by cell."""


class Number(StrEnum):
    """The numbers, by their place. The grid and the first sentence print the same bounds."""

    SENTENCE = "grid, first sentence: interval, or at most"
    DECIDED = "first sentence: of the cell that ended the merging"
    HARM_EITHER_WAY = "first sentence: from as safe to as lost"
    LOSS = "list: lost acknowledged data"
    CORRUPTION = "list: damaged"
    LOSS_EITHER_WAY = "list: lost, from as safe to as lost"
    CORRUPTION_EITHER_WAY = "list: damaged, from as safe to as lost"
    BAR = "picture: bar of speed against loss"
    GROUP = "group: its cells together"
    GROUP_EITHER_WAY = "group: from as safe to as lost"
    WORST = "group: at most for each of its cells"
    WORST_IF_LOST = "group: the same with inconclusive as lost"
    CHOICE = "what to choose: lost at most"
    FIRST_CHOICE = "what to choose: the first one"
    DIFFERENCE = "pairs: difference"
    FIRST_DIFFERENCE = "pairs: the first difference"
    PAIR_ALARM = "pairs: no false alarm"
    COMPARED = "`--compare`: difference"
    FIRST_COMPARED = "`--compare`: the first difference"
    COMPARED_ALARM = "`--compare`: no false alarm"


_OF_CELL = (
    ("harm", Number.SENTENCE, Number.HARM_EITHER_WAY),
    ("loss", Number.LOSS, Number.LOSS_EITHER_WAY),
    ("corruption", Number.CORRUPTION, Number.CORRUPTION_EITHER_WAY),
)


class Held(NamedTuple):
    """One number of one campaign."""

    number: Number
    share: float
    """1 if it holds, 0 if not; of a list the share of its numbers that hold."""
    rate: float | None = None
    """The true rate of its cell, or of all cells of its campaign; None where these differ."""


@lru_cache(maxsize=2**14)
def _printed(rate: Rate) -> tuple[float, float]:
    return printed_bounds(rate)


@lru_cache(maxsize=2**14)
def _printed_bound(bound: float) -> float:
    return float(bound_in_words(bound).removesuffix(" %")) / 100


def _is_within(truth: float, low: Rate, high: Rate) -> bool:
    return _printed(low)[0] <= truth <= _printed(high)[1]


def observed(campaign: Campaign) -> Iterator[Held]:
    """Every number of the page of a campaign."""
    truths = {nature.cell: truths_of(nature) for nature in campaign.natures}
    for nature, figures in zip(campaign.natures, campaign.cells, strict=True):
        if figures.conclusive:
            for held in _of_cell(figures, truths[nature.cell]):
                yield held._replace(rate=nature.harm)
                decides = campaign.kind is Kind.PLEASING and nature is campaign.natures[0]
                if decides and held.number is Number.SENTENCE:
                    yield held._replace(number=Number.DECIDED, rate=nature.harm)
    common = _common_rate(campaign)
    for part in (_of_groups, _of_choices, _of_pairs):
        for held in part(campaign.cells, truths):
            yield held._replace(rate=common)


def _common_rate(campaign: Campaign) -> float | None:
    """The true rate of all its cells; None where these differ."""
    rates = {nature.harm for nature in campaign.natures}
    return rates.pop() if len(rates) == 1 else None


def _of_cell(figures: CellFigures, truth: Mapping[str, float]) -> Iterator[Held]:
    for name, number, either_way in _OF_CELL:
        rate: Rate = getattr(figures, name)
        yield Held(number, _is_within(truth[name], rate, rate))
        if figures.unresolved:
            both = figures.either_way(rate)
            yield Held(either_way, _is_within(truth[f"{name}_whatever"], *both))
    yield Held(Number.BAR, figures.harm.low <= truth["harm"] <= figures.harm.high)


def _of_groups(cells: Sequence[CellFigures], truths: Truths) -> Iterator[Held]:
    for group in answer(cells):
        if not group.together.trials:
            continue
        own = [truths[figures.cell] for figures in group.cells]
        shown = [figures.conclusive for figures in group.cells]
        mean = float(np.average([truth["harm"] for truth in own], weights=shown))
        yield Held(Number.GROUP, _is_within(mean, group.together, group.together))
        worst = max(truth["harm"] for truth in own)
        yield Held(Number.WORST, worst <= _printed_bound(group.worst_bound))
        if group.unresolved:
            all_cuts = [figures.conclusive + figures.unresolved for figures in group.cells]
            whatever = [truth["harm_whatever"] for truth in own]
            mean = float(np.average(whatever, weights=all_cuts))
            yield Held(Number.GROUP_EITHER_WAY, _is_within(mean, *group.either_way))
            bound = _printed_bound(group.worst_bound_if_lost)
            yield Held(Number.WORST_IF_LOST, max(whatever) <= bound)


def _of_choices(cells: Sequence[CellFigures], truths: Truths) -> Iterator[Held]:
    held = [
        max(truths[own.cell]["harm"] for own in choice.fates) <= _printed_bound(choice.lost_at_most)
        for choice in fastest_safe(cells)[:12]
    ]
    yield from _of_list(held, Number.CHOICE, Number.FIRST_CHOICE)


def _of_pairs(cells: Sequence[CellFigures], truths: Truths) -> Iterator[Held]:
    couples = _couples(tuple(figures.cell for figures in cells)) if len(cells) < 20 else []
    if couples:
        by_name = {figures.cell: figures for figures in cells}
        pairs = compared([(axis, by_name[a], by_name[b]) for axis, a, b in couples])
        names = (Number.DIFFERENCE, Number.FIRST_DIFFERENCE, Number.PAIR_ALARM)
        yield from _of_table(pairs, truths, truths, names)


@lru_cache
def _couples(names: tuple[str, ...]) -> list[tuple[str, str, str]]:
    return [(axis, a.cell, b.cell) for axis, a, b in neighbours([figures_of(own) for own in names])]


def of_comparison(old: Campaign, new: Campaign) -> Iterator[Held]:
    """Every number of `--compare` of two campaigns."""
    before, after = (
        {figures.cell: figures for figures in campaign.cells} for campaign in (old, new)
    )
    was, now = (
        {nature.cell: truths_of(nature) for nature in campaign.natures} for campaign in (old, new)
    )
    pairs = compared(same_cells(before, after), is_between_runs=True)
    names = (Number.COMPARED, Number.FIRST_COMPARED, Number.COMPARED_ALARM)
    for held in _of_table(pairs, was, now, names):
        yield held._replace(rate=_common_rate(old))


def _of_table(
    pairs: Sequence[Pair], first: Truths, second: Truths, names: tuple[Number, Number, Number]
) -> Iterator[Held]:
    """The table as it is printed: the differing rates, the most significant first."""
    difference, first_difference, alarm = names
    held, is_accused = [], False
    for pair in pairs:
        comparison = pair.comparison
        if comparison.difference:
            was, now = first[pair.first.cell]["harm"], second[pair.second.cell]["harm"]
            low, high = math.floor(comparison.low * 100), math.ceil(comparison.high * 100)
            held.append(low / 100 <= now - was <= high / 100)
            is_alarm = pair.is_worse or (pair.is_better and alarm is Number.PAIR_ALARM)
            is_accused |= is_alarm and was == now
    yield from _of_list(held, difference, first_difference)
    if pairs:
        yield Held(alarm, not is_accused)


def _of_list(held: Sequence[bool], number: Number, first: Number) -> Iterator[Held]:
    """An empty list states nothing that could be wrong."""
    yield Held(number, sum(held) / len(held) if held else 1.0)
    if held:
        yield Held(first, held[0])


@dataclass(slots=True)
class Share:
    """The share of a number's values that hold."""

    held: float = 0.0
    of: int = 0

    @property
    def share(self) -> float:
        """Those that hold."""
        return self.held / self.of

    @property
    def error(self) -> float:
        """The standard error of the simulation."""
        return math.sqrt(self.share * (1 - self.share) / self.of)


@dataclass(slots=True)
class Coverage:
    """The coverage of every number over campaigns of one kind, in all and by true rate."""

    kind: Kind
    in_all: dict[Number, Share] = field(default_factory=dict)
    by_rate: dict[tuple[Number, float | None], Share] = field(default_factory=dict)

    def add(self, held: Held) -> None:
        """Count one number of one campaign."""
        in_all = self.in_all.setdefault(held.number, Share())
        at_rate = self.by_rate.setdefault((held.number, held.rate), Share())
        for share in (in_all, at_rate):
            share.held += held.share
            share.of += 1


def simulate(kind: Kind, campaigns: int, *, seed: int = 1) -> Coverage:
    """Play so many campaigns of a kind, and compare every second one with a run that has changed."""
    coverage = Coverage(kind=kind)
    for number in range(campaigns):
        draw = np.random.default_rng((seed, list(Kind).index(kind), number))
        natures = natures_of(kind, draw)
        campaign = play(kind, natures, draw)
        changed = (natures[0]._replace(harm=_CHANGED), *natures[1:]) if number % 2 else natures
        later = play(kind, changed, draw)
        for held in (*observed(campaign), *of_comparison(campaign, later)):
            coverage.add(held)
    return coverage


def table(every: Sequence[Coverage]) -> list[str]:
    """The lines of the table: a row per number, a column per kind of campaign."""
    kinds = [coverage.kind.name.lower().replace("_", " ") for coverage in every]
    columns = ["number", *kinds, "lowest at one rate"]
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help="of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="kinds at a time")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        every = list(pool.map(partial(simulate, campaigns=arguments.campaigns), Kind))
    print("\n".join(table(every)))


if __name__ == "__main__":
    main()
