"""Every number with an interval or a bound on the report's page, read from its printed words.

`observed` gives the numbers of one campaign, each with whether it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from suites.selftest.unit.report.campaigns import Campaign
from suites.selftest.unit.report.natures import Kind, Nature
from torture.facts.stats.rates import (
    Rate,
    bound_in_words,
    high_in_words,
    in_words,
    interval_in_words,
)
from torture.report.figures.answer import answer, fastest_safe
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.grid import grid_of
from torture.report.figures.pairs import Pair, compared, neighbours, same_cells
from torture.report.figures.sensitivity import Sensitivity
from torture.report.figures.sentence import answer_in_words
from torture.report.figures.wording import difference_in_words, either_way_in_words
from torture.report.reading.tally import CellTally

_NO_FAULTS = Sensitivity(versions={}, faults=())
_PERCENT = r"([-+]?[\d.]+)"
_STOPPED = r"(?: for a stopped run)?"
_INTERVAL = re.compile(rf"\[{_PERCENT}(?:-| to ){_PERCENT}(?: %)?{_STOPPED}\]")
_AT_MOST = re.compile(rf"\[at most {_PERCENT} %{_STOPPED}\]")


class Number(StrEnum):
    """The numbers, by their place."""

    MARK = "grid: interval of a mark, or its upper end"
    SENTENCE = "first sentence: interval, or at most"
    DECIDED = "first sentence: of the cell that ended the merging"
    SENTENCE_EITHER_WAY = "first sentence: from as safe to as lost"
    LOSS = "list: lost acknowledged data"
    DAMAGED = "list: damaged"
    LOSS_EITHER_WAY = "list: lost, from as safe to as lost"
    DAMAGED_EITHER_WAY = "list: damaged, from as safe to as lost"
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


class Held(NamedTuple):
    """One number of one campaign."""

    number: Number
    share: float
    """1 if it holds, 0 if not; of a list the share of its numbers that hold."""
    rate: float | None = None
    """The true rate of its cell, or of all cells of its campaign; None where these differ."""


class Shown(NamedTuple):
    """The bounds of a number, as the page prints them."""

    number: Number
    truth: str
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _OfCell:
    figures: CellFigures
    shown: tuple[Shown, ...]


def intervals_in(text: str) -> list[tuple[float, float]]:
    """Every interval in brackets, as shares; `at most` begins at 0."""
    found = [(float(low) / 100, float(high) / 100) for low, high in _INTERVAL.findall(text)]
    return found or [(0.0, float(high) / 100) for high in _AT_MOST.findall(text)]


def _mark(rate: Rate) -> str:
    """As the template `answer.html.j2` prints it."""
    return f"[{interval_in_words(rate)}]" if rate.events else f"[at most {high_in_words(rate)}]"


_kept: dict[int, tuple[CellTally, _OfCell]] = {}


def of_cell(tally: CellTally) -> _OfCell:
    """A cell's figures, and its numbers; the same tally is computed once."""
    kept = _kept.get(id(tally))
    if kept is not None:
        return kept[1]
    (figures,) = cell_figures([tally])
    made = _OfCell(figures=figures, shown=tuple(_numbers_of(figures)))
    if len(_kept) < 2**18:
        _kept[id(tally)] = (tally, made)
    return made


def _numbers_of(figures: CellFigures) -> Iterator[Shown]:
    if not figures.conclusive:
        return
    harm = figures.harm
    (mark,) = [one for _, fields in grid_of([figures]).rows for field in fields for one in field]
    yield Shown(Number.MARK, "harm", *intervals_in(_mark(mark.figures.harm))[0])
    sentence, _, rest = answer_in_words(figures, _NO_FAULTS).partition("]")
    yield Shown(Number.SENTENCE, "harm", *intervals_in(sentence + "]")[0])
    yield Shown(Number.BAR, "harm", harm.low, harm.high)
    if figures.unresolved:
        (low, _), (_, high) = intervals_in(rest)
        yield Shown(Number.SENTENCE_EITHER_WAY, "harm_whatever", low, high)
    for number, both, truth, rate in (
        (Number.LOSS, Number.LOSS_EITHER_WAY, "loss", figures.loss),
        (Number.DAMAGED, Number.DAMAGED_EITHER_WAY, "corruption", figures.corruption),
    ):
        yield Shown(number, truth, *intervals_in(in_words(rate))[0])
        if figures.unresolved:
            (low, _), (_, high) = intervals_in(either_way_in_words(rate, figures.unresolved))
            yield Shown(both, f"{truth}_whatever", low, high)


@lru_cache(maxsize=2**12)
def truths_of(nature: Nature) -> dict[str, float]:
    """The true rates of a cell."""
    return nature.truths


def observed(campaign: Campaign) -> Iterator[Held]:
    """Every number of the page of a campaign."""
    own = [of_cell(tally) for tally in campaign.tallies]
    truths = {nature.cell.name: truths_of(nature) for nature in campaign.natures}
    for nature, one in zip(campaign.natures, own, strict=True):
        for number, truth, low, high in one.shown:
            held = low <= truths_of(nature)[truth] <= high
            yield Held(number, held, nature.harm)
            decided = campaign.kind is Kind.PLEASING and nature is campaign.natures[0]
            if decided and number is Number.SENTENCE:
                yield Held(Number.DECIDED, held, nature.harm)
    cells = [one.figures for one in own]
    common = common_rate(campaign)
    for one_held in (*_of_groups(cells, truths), *_of_choices(cells, truths)):
        yield one_held._replace(rate=common)
    for one_held in _of_pairs(cells, truths):
        yield one_held._replace(rate=common)


def common_rate(campaign: Campaign) -> float | None:
    """The true rate of all its cells; None where these differ."""
    rates = {nature.harm for nature in campaign.natures}
    return rates.pop() if len(rates) == 1 else None


def _of_groups(cells: Sequence[CellFigures], truths: dict[str, dict[str, float]]) -> Iterator[Held]:
    for group in answer(cells):
        rate = group.together
        if not rate.trials:
            continue
        own = [truths[figures.cell] for figures in group.cells]
        weights = [figures.conclusive for figures in group.cells]
        mean = sum(w * each["harm"] for w, each in zip(weights, own, strict=True)) / sum(weights)
        yield _within(Number.GROUP, in_words(rate), mean)
        worst = max(each["harm"] for each in own)
        yield Held(Number.WORST, worst <= _printed(group.worst_bound))
        if group.unresolved:
            weights = [figures.conclusive + figures.unresolved for figures in group.cells]
            mean = sum(w * each["harm_whatever"] for w, each in zip(weights, own, strict=True))
            (low, _), (_, high) = intervals_in(either_way_in_words(rate, group.unresolved))
            yield Held(Number.GROUP_EITHER_WAY, low <= mean / sum(weights) <= high)
            worst = max(each["harm_whatever"] for each in own)
            yield Held(Number.WORST_IF_LOST, worst <= _printed(group.worst_bound_if_lost))


def _of_choices(
    cells: Sequence[CellFigures], truths: dict[str, dict[str, float]]
) -> Iterator[Held]:
    chosen = fastest_safe(cells)[:12]
    held = [
        max(truths[own.cell]["harm"] for own in choice.fates) <= _printed(choice.lost_at_most)
        for choice in chosen
    ]
    yield from _list(held, Number.CHOICE, Number.FIRST_CHOICE)


def _of_pairs(cells: Sequence[CellFigures], truths: dict[str, dict[str, float]]) -> Iterator[Held]:
    couples = _couples(tuple(cells)) if len(cells) < 20 else []
    if not couples:
        return
    by_name = {figures.cell: figures for figures in cells}
    pairs = compared([(axis, by_name[a], by_name[b]) for axis, a, b in couples])
    names = (Number.DIFFERENCE, Number.FIRST_DIFFERENCE, Number.PAIR_ALARM)
    yield from _of_table(pairs, truths, truths, names)


def of_comparison(old: Campaign, new: Campaign) -> Iterator[Held]:
    """Every number of `--compare` of two campaigns."""
    figures = [
        {one.figures.cell: one.figures for one in map(of_cell, campaign.tallies)}
        for campaign in (old, new)
    ]
    truths = [
        {nature.cell.name: truths_of(nature) for nature in campaign.natures}
        for campaign in (old, new)
    ]
    names = (Number.COMPARED, Number.FIRST_COMPARED, Number.COMPARED_ALARM)
    common = common_rate(old)
    pairs = compared(same_cells(*figures), is_between_runs=True)
    for held in _of_table(pairs, truths[0], truths[1], names):
        yield held._replace(rate=common)


def _of_table(
    pairs: Sequence[Pair],
    first: dict[str, dict[str, float]],
    second: dict[str, dict[str, float]],
    names: tuple[Number, Number, Number],
) -> Iterator[Held]:
    """The table as it is printed: the differing rates, the most significant first."""
    difference, first_difference, alarm = names
    differing = [pair for pair in pairs if pair.comparison.difference]
    held, is_accused = [], False
    for pair in differing:
        was = first[pair.first.cell]["harm"]
        now = second[pair.second.cell]["harm"]
        ((low, high),) = intervals_in(difference_in_words(pair.comparison))
        held.append(low <= now - was <= high)
        is_alarm = pair.is_worse or (pair.is_better and alarm is Number.PAIR_ALARM)
        is_accused |= is_alarm and was == now
    yield from _list(held, difference, first_difference)
    if pairs:
        yield Held(alarm, not is_accused)


def _list(held: Sequence[bool], number: Number, first: Number) -> Iterator[Held]:
    """An empty list states nothing that could be wrong."""
    yield Held(number, sum(held) / len(held) if held else 1.0)
    if held:
        yield Held(first, held[0])


_COUPLES: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}


def _couples(cells: tuple[CellFigures, ...]) -> list[tuple[str, str, str]]:
    names = tuple(figures.cell for figures in cells)
    if names not in _COUPLES:
        _COUPLES[names] = [(axis, a.cell, b.cell) for axis, a, b in neighbours(cells)]
    return _COUPLES[names]


def _within(number: Number, text: str, truth: float) -> Held:
    ((low, high),) = intervals_in(text)
    return Held(number, low <= truth <= high)


@lru_cache(maxsize=2**16)
def _printed(bound: float) -> float:
    return float(bound_in_words(bound).removesuffix(" %")) / 100
