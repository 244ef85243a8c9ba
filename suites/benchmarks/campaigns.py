"""Simulated campaigns over cells of known true rates: reruns, merged runs and stops.

A campaign ends as the counts that the report's store gives. Which record of a trial counts, and when
`--until` ends a cell, are the engine's own rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import rate_of
from torture.facts.stats.sequential import Until
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.counting import the_one_that_counts
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.reading.tally import CellTally, FirstTry, TrialKind, Worth

RATES = (0.0, 0.005, 0.02, 0.1, 0.4, 0.9)
"""The true rates of harm among cuts that are not empty."""
CELLS = tuple(
    f"iscsi-{name}"
    for name in (
        "always-noslog-btrfs-bothdie", "always-plp-btrfs-bothdie", "always-noslog-ext4-bothdie",
        "always-noslog-btrfs-nasonly", "standard-noslog-btrfs-nasonly",
        "standard-noslog-ext4-nasonly", "disabled-noslog-btrfs-bothdie",
        "disabled-noslog-ext4-bothdie",
    )
)  # fmt: skip
"""Four that theory calls safe, two that lose, and two that roll back."""
_WIDE = tuple(
    cell.name for cell in cells_of(Matrix.DEFAULT) if guarantee_of(cell) is Guarantee.SAFE
)
_SIZES = (6, 12, 29, 40)
"""The cuts of a cell in a run."""
_RUNS_MAX = 8
_JOBS = 3
_CUTS_MAX = 200
_QUESTIONS = ("upper<0.1", "upper<0.2", "corruption lower>0.3")
_LIMITS = (0.05, 0.1, 0.3)
"""A merged run pleases when the first cell's upper bound is below one of these."""
_EMPTY, _FAILED = 0.1, 0.05
"""The share of cuts at a moment without anything at risk, and of trials that fail."""
_HARM = (
    (Verdict.ROLLED_BACK, True, 0.4), (Verdict.CORRUPTED, True, 0.3), (Verdict.CORRUPTED, False, 0.1),
    (Verdict.UNREPAIRABLE, True, 0.1), (Verdict.POOL_LOST, True, 0.1),
)  # fmt: skip
"""Of harmed cuts: the verdict, whether acknowledged data is missing, and the share."""
Ints = npt.NDArray[np.int_]


class Kind(StrEnum):
    """How the trials of a campaign come about."""

    FIXED = "a fixed number of cuts"
    RELATED = "losing cuts are often inconclusive, some empty cuts lose"
    AGAIN = "lost and inconclusive trials are made again"
    ALL_AGAIN = "after a breach every trial is made again"
    MERGED = "three runs are merged"
    PLEASING = "runs are merged until the first cell pleases"
    UNTIL = "`--until`"
    WIDE = "a fixed number of cuts, 32 safe cells"


class Ending(NamedTuple):
    """An end of a cut, as the counting sees it, and its truth."""

    kind: TrialKind
    is_harmed: bool = False
    """Whether data was lost or damaged, also where the trial does not show it."""

    @property
    def is_conclusive(self) -> bool:
        """Whether the trial says something about the data."""
        return self.kind.verdict is not Verdict.INCONCLUSIVE

    @property
    def is_breach(self) -> bool:
        """Whether it breaks its cell's guarantee."""
        return self.kind.broke_guarantee


@lru_cache
def endings_of(cell: str) -> tuple[Ending, ...]:
    """Every end of a cell's cuts."""
    guarantee = guarantee_of(Cell.parse(cell))
    unknown = TrialKind(Verdict.INCONCLUSIVE, False, False)
    return (
        Ending(TrialKind(Verdict.INTACT, False, False)),
        *(
            Ending(TrialKind(verdict, is_loss, guarantee.is_broken_by(verdict)), is_harmed=True)
            for verdict, is_loss, _ in _HARM
        ),
        Ending(unknown),
        Ending(unknown, is_harmed=True),
        Ending(unknown._replace(is_empty=True)),
    )


class Nature(NamedTuple):
    """The truth of one cell."""

    cell: str
    harm: float
    """The rate of harm among cuts that are not empty."""
    is_related: bool = False
    """Whether half of its losing trials are inconclusive, and empty cuts lose half as often."""

    @property
    def chances(self) -> tuple[float, ...]:
        """The probability of each ending."""
        harm_if_empty = self.harm / 2 if self.is_related else 0.0
        hidden = 0.5 if self.is_related else _FAILED
        harmed = (1 - _EMPTY) * self.harm + _EMPTY * harm_if_empty
        harmless = (1 - _EMPTY) * (1 - self.harm)
        return (
            harmless * (1 - _FAILED),
            *(harmed * (1 - hidden) * share for *_, share in _HARM),
            harmless * _FAILED,
            harmed * hidden,
            _EMPTY * (1 - harm_if_empty),
        )


@lru_cache(maxsize=2**12)
def truths_of(nature: Nature) -> dict[str, float]:
    """The true rates of which a page states intervals.

    Those of `harm`, `loss` and `corruption` are among conclusive cuts. Those with `_whatever` are among
    all cuts but inconclusive empty ones. They count harm that no trial shows.
    """
    own = list(zip(endings_of(nature.cell), nature.chances, strict=True))
    shares = {
        "harm": 1.0,
        "loss": sum(share for _, is_loss, share in _HARM if is_loss),
        "corruption": sum(share for verdict, _, share in _HARM if verdict.is_corruption),
    }
    harm = _harmed([pair for pair in own if pair[0].is_conclusive])
    whatever = _harmed([pair for pair in own if not pair[0].kind.is_empty])
    return {name: harm * share for name, share in shares.items()} | {
        f"{name}_whatever": whatever * share for name, share in shares.items()
    }


def _harmed(endings: Sequence[tuple[Ending, float]]) -> float:
    harmed = sum(chance for ending, chance in endings if ending.is_harmed)
    return harmed / sum(chance for _, chance in endings)


def natures_of(kind: Kind, draw: np.random.Generator) -> tuple[Nature, ...]:
    """The truth of a campaign: cells of mixed rates, or in every second campaign all of one rate."""
    cells = _WIDE if kind is Kind.WIDE else CELLS
    rates = draw.choice(RATES, size=len(cells))
    if draw.random() < 1 / 2:
        rates[:] = rates[0]
    related = kind is Kind.RELATED
    return tuple(
        Nature(cell, float(rate), related) for cell, rate in zip(cells, rates, strict=True)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Campaign:
    """The truth of each cell, and its figures."""

    kind: Kind
    natures: tuple[Nature, ...]
    cells: tuple[CellFigures, ...]


def play(kind: Kind, natures: tuple[Nature, ...], draw: np.random.Generator) -> Campaign:
    """One campaign over cells of this truth."""
    cuts = int(draw.choice(_SIZES))
    match kind:
        case Kind.AGAIN | Kind.ALL_AGAIN:
            ends = _made_again(natures, draw, cuts, is_all=kind is Kind.ALL_AGAIN)
        case Kind.UNTIL:
            question = _QUESTIONS[draw.integers(len(_QUESTIONS))]
            ends = [_by_ending(own, _until(own, draw, question)) for own in natures]
        case Kind.PLEASING:
            made = _merged_until_pleasing(natures, draw, min(cuts, 12))
            ends = [_by_ending(own, end) for own, end in zip(natures, made, strict=True)]
        case _:
            of = 3 * cuts if kind is Kind.MERGED else cuts
            ends = [_by_ending(own, draw.multinomial(of, own.chances)) for own in natures]
    cells = tuple(
        figures_of(own.cell, tuple(end.items()), is_sequential=kind is Kind.UNTIL)
        for own, end in zip(natures, ends, strict=True)
    )
    return Campaign(kind=kind, natures=natures, cells=cells)


def _by_ending(nature: Nature, counts: Ints) -> Counter[Ending]:
    ends = zip(endings_of(nature.cell), counts.tolist(), strict=True)
    return Counter({ending: count for ending, count in ends if count})


@lru_cache(maxsize=2**17)
def figures_of(
    cell: str, counts: tuple[tuple[Ending, int], ...] = (), *, is_sequential: bool = False
) -> CellFigures:
    """The cell's figures, of trials with these endings."""
    (figures,) = cell_figures([tally_of(cell, counts, is_sequential=is_sequential)])
    return figures


def tally_of(
    cell: str, counts: Sequence[tuple[Ending, int]], *, is_sequential: bool = False
) -> CellTally:
    """The cell's counts as the store gives them; each safe cell has a speed of its own."""
    kinds: Counter[TrialKind] = Counter()
    for ending, count in counts:
        kinds[ending.kind] += count
    known = Cell.parse(cell)
    return CellTally(
        cell=cell,
        axes=known.axes,
        guarantee=guarantee_of(known),
        counts=kinds,
        is_sequential=is_sequential,
        acknowledged_per_s=10.0,
        rollback_ms=None,
        worth=Worth(durable_per_s=float(1 + sum(map(ord, cell)) % 97)),
    )


def _made_again(
    natures: Sequence[Nature], draw: np.random.Generator, cuts: int, *, is_all: bool
) -> list[Counter[Ending]]:
    """A trial has up to three tries; the engine's rule chooses among them.

    Inconclusive and harmed first tries are made again. With `is_all`, a campaign with a breach is: every
    trial has a second try.
    """
    ends = [draw.choice(len(own.chances), size=(cuts, 3), p=own.chances) for own in natures]
    has_breach = any(
        endings_of(own.cell)[end].is_breach
        for own, made in zip(natures, ends, strict=True)
        for end in made[:, 0].tolist()
    )
    return [
        Counter(counted(own.cell, *row, is_all=is_all and has_breach) for row in made.tolist())
        for own, made in zip(natures, ends, strict=True)
    ]


@lru_cache(maxsize=2**14)
def counted(cell: str, *drawn: int, is_all: bool) -> Ending:
    """The ending that counts, of a trial whose tries would end so, with its first conclusive try."""
    tries = tries_of([endings_of(cell)[end] for end in drawn], is_all=is_all)
    counts = the_one_that_counts(tries)
    first = next((made for made in tries if made.is_conclusive), counts)
    if first is counts or not counts.is_conclusive:
        return counts
    first_try = FirstTry(first.kind.is_loss, first.kind.verdict.is_corruption)
    return counts._replace(kind=counts.kind._replace(first=first_try))


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
        shown = {
            ending: count
            for ending, count in _by_ending(natures[0], counts[0]).items()
            if ending.is_conclusive
        }
        harmed = sum(count for ending, count in shown.items() if ending.is_harmed)
        if rate_of(harmed, sum(shown.values())).high < limit:
            break
    return counts


def _until(nature: Nature, draw: np.random.Generator, question: str) -> Ints:
    """Cuts until the question is answered; trials that are under way by then end and count."""
    made = draw.choice(len(nature.chances), size=_CUTS_MAX, p=nature.chances)
    is_corruption = question.startswith("corruption")
    events = trials = 0
    for place, end in enumerate(made.tolist()):
        ending = endings_of(nature.cell)[end]
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
