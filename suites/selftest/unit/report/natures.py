"""The truth of simulated cells: how their cuts end, and the rates that a page states of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from torture.choices.matrix.cells import Cell, cells_of
from torture.choices.matrix.guarantees import guarantee_of
from torture.facts.axes.sweeps import Matrix
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.report.reading.tally import TrialKind

RATES = (0.0, 0.005, 0.02, 0.1, 0.4, 0.9)
"""The true rates of harm among cuts that are not empty."""
CELLS = tuple(
    Cell.parse(f"iscsi-{name}")
    for name in (
        "always-noslog-btrfs-bothdie", "always-plp-btrfs-bothdie", "always-noslog-ext4-bothdie",
        "always-noslog-btrfs-nasonly", "standard-noslog-btrfs-nasonly",
        "standard-noslog-ext4-nasonly", "disabled-noslog-btrfs-bothdie",
        "disabled-noslog-ext4-bothdie",
    )
)  # fmt: skip
"""Four that theory calls safe, two that lose, and two that roll back."""
SAFE_CELLS = tuple(
    cell for cell in cells_of(Matrix.DEFAULT) if guarantee_of(cell) is Guarantee.SAFE
)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
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


_HARM = (
    (Verdict.ROLLED_BACK, True, 0.4), (Verdict.CORRUPTED, True, 0.3), (Verdict.CORRUPTED, False, 0.1),
    (Verdict.UNREPAIRABLE, True, 0.1), (Verdict.POOL_LOST, True, 0.1),
)  # fmt: skip
"""Of harmed cuts: the verdict, whether acknowledged data is missing, and the share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Nature:
    """The truth of one cell."""

    cell: Cell
    harm: float
    """The rate of harm among cuts that are not empty."""
    empty: float
    """The share of cuts at a moment without anything at risk."""
    harm_if_empty: float
    failed: float
    """The share of harmless cuts whose trial fails."""
    failed_if_harmed: float

    @property
    def endings(self) -> tuple[Ending, ...]:
        """Every end of a cut, in the order of `chances`."""
        return endings_of(guarantee_in(self.cell.name))

    @property
    def chances(self) -> tuple[float, ...]:
        """The probability of each end."""
        harmed = self.harm_of_all
        harmless = (1 - self.empty) * (1 - self.harm)
        shown = harmed * (1 - self.failed_if_harmed)
        return (
            harmless * (1 - self.failed),
            *(shown * share for *_, share in _HARM),
            harmless * self.failed,
            harmed * self.failed_if_harmed,
            self.empty * (1 - self.harm_if_empty),
        )

    @property
    def harm_of_all(self) -> float:
        """The rate of harm among all cuts."""
        return (1 - self.empty) * self.harm + self.empty * self.harm_if_empty

    @property
    def truths(self) -> dict[str, float]:
        """The true rates of which a page states intervals.

        Those of `harm`, `loss` and `corruption` are among conclusive cuts. Those with `_whatever` are
        among all cuts but inconclusive empty ones. They count harm that no trial shows.
        """
        own = list(zip(self.endings, self.chances, strict=True))
        shown = [pair for pair in own if pair[0].is_conclusive]
        loss, corruption = (
            sum(share for verdict, is_loss, share in _HARM if counts(verdict, is_loss))
            for counts in (lambda _, is_loss: is_loss, lambda verdict, _: verdict.is_corruption)
        )
        harm = _share(shown)
        whatever = _share([pair for pair in own if not pair[0].kind.is_empty])
        return {
            "harm": harm, "loss": harm * loss, "corruption": harm * corruption,
            "harm_whatever": whatever, "loss_whatever": whatever * loss,
            "corruption_whatever": whatever * corruption,
        }  # fmt: skip


def _share(endings: Sequence[tuple[Ending, float]]) -> float:
    harmed = sum(chance for ending, chance in endings if ending.is_harmed)
    return harmed / sum(chance for _, chance in endings)


@lru_cache
def guarantee_in(cell: str) -> Guarantee:
    """A cell's guarantee, computed once."""
    return guarantee_of(Cell.parse(cell))


@lru_cache
def axes_in(cell: str) -> dict[str, str]:
    """A cell's choices, computed once."""
    return Cell.parse(cell).axes


@lru_cache
def endings_of(guarantee: Guarantee) -> tuple[Ending, ...]:
    """Every end of a cut of cells with this guarantee."""

    def kind(verdict: Verdict, *, is_loss: bool = False, is_empty: bool = False) -> TrialKind:
        return TrialKind(verdict, is_loss, guarantee.is_broken_by(verdict), is_empty)

    return (
        Ending(kind=kind(Verdict.INTACT)),
        *(
            Ending(kind=kind(verdict, is_loss=is_loss), is_harmed=True)
            for verdict, is_loss, _ in _HARM
        ),
        Ending(kind=kind(Verdict.INCONCLUSIVE)),
        Ending(kind=kind(Verdict.INCONCLUSIVE), is_harmed=True),
        Ending(kind=kind(Verdict.INCONCLUSIVE, is_empty=True)),
    )


def natures_of(kind: Kind, draw: np.random.Generator) -> tuple[Nature, ...]:
    """The truth of a campaign: cells of mixed rates, or in every second campaign all of one rate."""
    cells = SAFE_CELLS if kind is Kind.WIDE else CELLS
    rates = draw.choice(RATES, size=len(cells))
    if draw.random() < 1 / 2:
        rates[:] = rates[0]
    is_related = kind is Kind.RELATED
    return tuple(
        Nature(
            cell=cell,
            harm=float(rate),
            empty=0.1,
            harm_if_empty=float(rate) / 2 if is_related else 0.0,
            failed=0.05,
            failed_if_harmed=0.5 if is_related else 0.05,
        )
        for cell, rate in zip(cells, rates, strict=True)
    )
