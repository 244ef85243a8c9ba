"""A cell's row of the table at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torture.record.trials import TrialRecord
from torture.stats.rates import Rate, rate_of
from torture.stats.sequential import sequential_rate_of
from torture.verdict.verdicts import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class CellSummary:
    """One row of the table. Rates are of conclusive trials only.

    `loss`: trials in which something acknowledged is not there, whatever the verdict. `corruption`:
    trials whose verdict is worse than consistent but old.
    """

    cell: str
    guarantee: str
    trials: int
    verdicts: dict[Verdict, int]
    loss: Rate
    corruption: Rate

    @property
    def inconclusive(self) -> int:
        """Trials that say nothing about the data."""
        return self.verdicts.get(Verdict.INCONCLUSIVE, 0)


def summarise(
    records: Iterable[TrialRecord], *, is_sequential: bool = False
) -> tuple[CellSummary, ...]:
    """One summary a cell, by name. `is_sequential`: cells stopped when their question was answered."""
    by_cell: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_cell.setdefault(record.cell, []).append(record)
    count = sequential_rate_of if is_sequential else rate_of
    return tuple(_summary(cell, by_cell[cell], count) for cell in sorted(by_cell))


def _summary(
    cell: str, records: list[TrialRecord], count: Callable[[int, int], Rate]
) -> CellSummary:
    verdicts = Counter(record.verdict for record in records)
    conclusive = [record for record in records if record.verdict is not Verdict.INCONCLUSIVE]
    return CellSummary(
        cell=cell,
        guarantee=records[-1].guarantee,
        trials=len(records),
        verdicts=dict(verdicts),
        loss=count(sum(record.is_loss for record in conclusive), len(conclusive)),
        corruption=count(
            sum(record.verdict.is_corruption for record in conclusive), len(conclusive)
        ),
    )
