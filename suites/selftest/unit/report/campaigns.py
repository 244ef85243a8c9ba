"""Simulated campaigns of several cells: reruns, merged runs and stops.

A campaign ends as the counts that the report's store gives: a `CellTally` for each cell. The rules are
the engine's own: which record of a trial counts, and when `--until` ends a cell.
`test_report_coverage_of_numbers.py` writes campaigns as records, and reads these counts from the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from suites.selftest.unit.report.natures import (
    Ending,
    Kind,
    Nature,
    axes_in,
    endings_of,
    guarantee_in,
)
from torture.facts.stats.rates import rate_of
from torture.facts.stats.sequential import Until
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.counting import the_one_that_counts
from torture.report.reading.tally import CellTally, FirstTry, Spread, TrialKind, Worth

SIZES = (6, 12, 29, 40)
"""The cuts of a cell in a run."""
_RUNS_MAX = 8
_JOBS = 3
_CUTS_MAX = 200
_QUESTIONS = ("upper<0.1", "upper<0.2", "corruption lower>0.3")
_LIMITS = (0.05, 0.1, 0.3)
"""A merged run pleases when the first cell's upper bound is below one of these."""

Ints = npt.NDArray[np.int_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Campaign:
    """The truth of each cell, and its counts."""

    kind: Kind
    natures: tuple[Nature, ...]
    tallies: tuple[CellTally, ...]


def play(kind: Kind, natures: tuple[Nature, ...], draw: np.random.Generator) -> Campaign:
    """One campaign over cells of this truth."""
    cuts = int(draw.choice(SIZES))
    is_sequential = kind is Kind.UNTIL
    match kind:
        case Kind.AGAIN | Kind.ALL_AGAIN:
            counts = _made_again(natures, draw, cuts, is_all=kind is Kind.ALL_AGAIN)
        case Kind.UNTIL:
            question = _QUESTIONS[draw.integers(len(_QUESTIONS))]
            counts = [_by_ending(own, _until(own, draw, question)) for own in natures]
        case Kind.PLEASING:
            ends = _merged_until_pleasing(natures, draw, min(cuts, 12))
            counts = [_by_ending(own, end) for own, end in zip(natures, ends, strict=True)]
        case _:
            of = 3 * cuts if kind is Kind.MERGED else cuts
            counts = [_by_ending(own, draw.multinomial(of, own.chances)) for own in natures]
    return Campaign(
        kind=kind,
        natures=natures,
        tallies=tuple(
            tally_of(own.cell.name, tuple(end.items()), is_sequential=is_sequential)
            for own, end in zip(natures, counts, strict=True)
        ),
    )


Counts = dict[Ending, int]


def _by_ending(nature: Nature, counts: Ints) -> Counts:
    ends = zip(nature.endings, counts.tolist(), strict=True)
    return {ending: count for ending, count in ends if count}


@lru_cache(maxsize=2**17)
def tally_of(
    cell: str, counts: tuple[tuple[Ending, int], ...], *, is_sequential: bool
) -> CellTally:
    """The cell's counts as the store gives them; each safe cell has a speed of its own."""
    kinds: Counter[TrialKind] = Counter()
    for ending, count in counts:
        kinds[ending.kind] += count
    has_rolled_back = any(kind.verdict is Verdict.ROLLED_BACK for kind in kinds)
    return CellTally(
        cell=cell,
        axes=axes_in(cell),
        guarantee=guarantee_in(cell),
        counts=kinds,
        is_sequential=is_sequential,
        acknowledged_per_s=10.0,
        rollback_ms=Spread(least=40, median=50, most=700) if has_rolled_back else None,
        worth=Worth(durable_per_s=float(1 + sum(map(ord, cell)) % 97)),
    )


def _made_again(
    natures: Sequence[Nature], draw: np.random.Generator, cuts: int, *, is_all: bool
) -> list[Counts]:
    """A trial has up to three tries; the engine's rule chooses among them.

    Inconclusive and harmed first tries are made again. With `is_all`, a campaign with a breach is: every
    trial has a second try.
    """
    ends = [draw.choice(len(own.chances), size=(cuts, 3), p=own.chances) for own in natures]
    has_breach = any(
        own.endings[end].is_breach
        for own, made in zip(natures, ends, strict=True)
        for end in set(made[:, 0].tolist())
    )
    return [
        dict(
            Counter(
                counted(guarantee_in(own.cell.name), *row, is_all=is_all and has_breach)
                for row in made.tolist()
            )
        )
        for own, made in zip(natures, ends, strict=True)
    ]


@lru_cache(maxsize=2**14)
def counted(guarantee: Guarantee, *drawn: int, is_all: bool) -> Ending:
    """The ending that counts, of a trial whose tries would end so, with its first conclusive try."""
    tries = tries_of([endings_of(guarantee)[end] for end in drawn], is_all=is_all)
    counts = the_one_that_counts(tries)
    first = next((made for made in tries if made.is_conclusive), counts)
    if first is counts or not counts.is_conclusive:
        return counts
    first_try = FirstTry(first.kind.is_loss, first.kind.verdict.is_corruption)
    return replace(counts, kind=counts.kind._replace(first=first_try))


def tries_of(drawn: Sequence[Ending], *, is_all: bool) -> list[Ending]:
    """The tries that are made of one trial, in order."""
    tries = [drawn[0]]
    if is_all or not drawn[0].is_conclusive or drawn[0].is_harmed:
        tries.append(drawn[1])
    if not any(made.is_conclusive for made in tries):
        tries.append(drawn[2])
    return tries


def _merged_until_pleasing(
    natures: Sequence[Nature], draw: np.random.Generator, cuts: int
) -> list[Ints]:
    """Runs of so many cuts, until the first cell's upper bound is below a limit."""
    limit = draw.choice(_LIMITS)
    counts = [np.zeros(len(own.chances), dtype=int) for own in natures]
    for _ in range(_RUNS_MAX):
        for own, before in zip(natures, counts, strict=True):
            before += draw.multinomial(cuts, own.chances)
        shown = [
            (ending.is_harmed, count)
            for ending, count in _by_ending(natures[0], counts[0]).items()
            if ending.is_conclusive
        ]
        harmed = sum(count for is_harmed, count in shown if is_harmed)
        if rate_of(harmed, sum(n for _, n in shown)).high < limit:
            break
    return counts


def _until(nature: Nature, draw: np.random.Generator, question: str) -> Ints:
    """Cuts until the question is answered; trials that are under way by then end and count."""
    made = draw.choice(len(nature.chances), size=_CUTS_MAX, p=nature.chances)
    is_corruption = question.startswith("corruption")
    endings = nature.endings
    events = trials = 0
    for place, end in enumerate(made.tolist()):
        ending = endings[end]
        if ending.is_conclusive:
            trials += 1
            events += ending.kind.verdict.is_corruption if is_corruption else ending.kind.is_loss
            if _is_answered(question, events, trials):
                made = made[: place + _JOBS]
                break
    return np.bincount(made, minlength=len(nature.chances))


@lru_cache(maxsize=2**16)
def _is_answered(question: str, events: int, trials: int) -> bool:
    return Until.parse(question).answer(events, trials) is not None
