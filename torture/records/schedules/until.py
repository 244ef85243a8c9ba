"""Each cell until its question is answered: its other trials need not run.

Only an unbroken row of trials counts: all that have ended, from the cell's first on, without a gap.
If every ended trial counted, slow trials would be missing at any look. If slow trials are those
that lose, cells would look safer than they are. So a cell's end depends on its trials alone, not on
the speed of a worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torture.choices.matrix.cells import Cell
from torture.facts.stats.sequential import Answer, Counted, Until
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule
from torture.records.schedules.protocol import ScheduleKind, ScheduleOrder

_TRIALS_OF_FEWEST = 4
"""The number for each cell, without a choice of the user. By then, 88 of 100 cells have an answer
for a rate of 0.3 times the limit (simulated for `upper<0.01`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """The answer to a cell's question, and the number of conclusive trials before it."""

    answer: Answer
    events: int
    trials: int


class UntilSchedule(FixedSchedule):
    """A queue that drops a cell's waiting trials as soon as the cell's question is answered."""

    def __init__(self, specs: Sequence[TrialSpec], until: Until) -> None:
        super().__init__(specs, draws_again=False)
        self._until = until
        self._settled: dict[Cell, Settled] = {}
        by_cell: dict[Cell, list[TrialSpec]] = {}
        for spec in specs:
            by_cell.setdefault(spec.cell, []).append(spec)
        self._rows = {
            cell: _Row([spec.trial for spec in sorted(row, key=lambda spec: spec.index)])
            for cell, row in by_cell.items()
        }

    @property
    def settled(self) -> dict[Cell, Settled]:
        """The cells with an answer, in the order of the answers."""
        return dict(self._settled)

    def give_back(self, spec: TrialSpec) -> None:
        """See `Schedule`; a trial of a cell that was answered meanwhile is needless."""
        super().give_back(spec)
        if spec.cell in self._settled:
            self.drop(lambda waiting: waiting.cell == spec.cell)

    def record_ended(self, spec: TrialSpec, record: TrialRecord) -> None:
        """See `Schedule`."""
        super().record_ended(spec, record)
        if spec.cell in self._settled:
            return
        answered = self._rows[spec.cell].answered_by(spec, record, self._until)
        if answered is not None:
            self._settled[spec.cell] = answered
            self.drop(lambda waiting: waiting.cell == spec.cell)

    def in_words(self) -> str:
        """The number of cells for each answer, e.g. `loss upper<0.01: yes 10, no 1, unanswered 1`."""
        given = Counter(settled.answer for settled in self._settled.values())
        counts = [f"{answer} {given[answer]}" for answer in Answer if given[answer]]
        if unanswered := len(self._rows) - len(self._settled):
            counts.append(f"unanswered {unanswered}")
        return f"{self._until}: {', '.join(counts)}"


class _Row:
    """The trials of one cell in order, and the part that has ended without a gap."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._ended: dict[str, TrialRecord] = {}
        self._next = 0
        self._events = 0
        self._trials = 0

    def answered_by(self, spec: TrialSpec, record: TrialRecord, until: Until) -> Settled | None:
        """The answer after this record of the row, if there is one; it counts as the page's rates do.

        So neither an inconclusive trial counts, nor one that was cut at the moment of a finding.
        """
        self._ended[spec.trial] = record
        for counted in self._now_without_gap():
            if not counted.is_conclusive or counted.cut.confirmed.is_made:
                continue
            self._trials += 1
            self._events += _happened(counted, until.counted)
            answer = until.answer(self._events, self._trials)
            if answer is not None:
                return Settled(answer=answer, events=self._events, trials=self._trials)
        return None

    def _now_without_gap(self) -> Iterator[TrialRecord]:
        """Ended trials that were not yet returned, up to the first that has not ended."""
        while self._next < len(self._names) and self._names[self._next] in self._ended:
            yield self._ended.pop(self._names[self._next])
            self._next += 1


def _happened(record: TrialRecord, counted: Counted) -> bool:
    return record.verdict.is_corruption or (counted is Counted.LOSS and record.is_loss)


def _order(asked: str) -> ScheduleOrder:
    until = Until.parse(asked)
    return ScheduleOrder(
        make=lambda specs: UntilSchedule(specs, until),
        question=str(until),
        trials=_TRIALS_OF_FEWEST * until.trials_at_best,
    )


SCHEDULE = ScheduleKind(
    name="until",
    words="with a question, as by --until: each cell until it is answered",
    order=_order,
)
