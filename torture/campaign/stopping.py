"""When a cell's question is answered, so that its other trials need not run.

Only an unbroken row of trials counts: from the cell's first on, all that have ended without a gap.
Were every trial counted that has ended, those that take long would be missing at any look, and if
these are the ones that lose, cells would look safer than they are. So where a cell stops depends on
its trials alone, not on which worker was quick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from torture.matrix.cells import Cell
from torture.record.specs import TrialSpec
from torture.record.trials import TrialRecord
from torture.stats.sequential import Answer, Counted, Until
from torture.verdict.verdicts import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What a cell's question was answered with, and after how many conclusive trials."""

    answer: Answer
    events: int
    trials: int


class Stopping:
    """Hears of every trial that ended and says which cells are settled. Not thread-safe."""

    def __init__(self, until: Until, specs: Iterable[TrialSpec]) -> None:
        self.settled: dict[Cell, Settled] = {}
        self._until = until
        by_cell: dict[Cell, list[TrialSpec]] = {}
        for spec in specs:
            by_cell.setdefault(spec.cell, []).append(spec)
        self._rows = {
            cell: _Row([spec.trial for spec in sorted(row, key=lambda spec: spec.index)])
            for cell, row in by_cell.items()
        }

    def in_words(self) -> str:
        """How many cells have which answer, e.g. `loss upper<0.01: yes 10, no 1, unanswered 1`."""
        given = Counter(settled.answer for settled in self.settled.values())
        said = [f"{answer} {given[answer]}" for answer in Answer if given[answer]]
        if unanswered := len(self._rows) - len(self.settled):
            said.append(f"unanswered {unanswered}")
        return f"{self._until}: {', '.join(said)}"

    def take(self, cell: Cell, record: TrialRecord) -> bool:
        """Whether the record, of a trial of that cell, settles it now."""
        if cell in self.settled:
            return False
        row = self._rows[cell]
        row.ended[record.trial] = record
        for known in row.now_without_gap():
            if known.verdict is Verdict.INCONCLUSIVE:
                continue
            row.trials += 1
            row.events += _happened(known, self._until.counted)
            answer = self._until.answer(row.events, row.trials)
            if answer is not None:
                self.settled[cell] = Settled(answer=answer, events=row.events, trials=row.trials)
                return True
        return False


class _Row:
    """The trials of one cell in order, and how far they have ended without a gap."""

    def __init__(self, names: list[str]) -> None:
        self.ended: dict[str, TrialRecord] = {}
        self.events = 0
        self.trials = 0
        self._names = names
        self._next = 0

    def now_without_gap(self) -> Iterable[TrialRecord]:
        """Those that have ended and were not yet told, up to the first that has not."""
        while self._next < len(self._names) and self._names[self._next] in self.ended:
            yield self.ended.pop(self._names[self._next])
            self._next += 1


def _happened(record: TrialRecord, counted: Counted) -> bool:
    return record.is_loss if counted is Counted.LOSS else record.verdict.is_corruption
