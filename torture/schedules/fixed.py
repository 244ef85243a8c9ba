"""Every trial that was drawn, in that order, whatever their verdicts are."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from torture.matrix.cells import Cell
from torture.record.specs import TrialSpec
from torture.record.trials import TrialRecord
from torture.schedules.protocol import ScheduleKind, ScheduleOrder


class FixedSchedule:
    """A queue of trials. `drop` is for schedules that find some of them needless."""

    def __init__(self, specs: Sequence[TrialSpec]) -> None:
        self._waiting = deque(specs)
        self._total = len(specs)
        self._left_of_cell = Counter(spec.cell for spec in specs)

    @property
    def total(self) -> int:
        """See `Schedule`."""
        return self._total

    @property
    def is_over(self) -> bool:
        """See `Schedule`."""
        return self._left_of_cell.total() == 0

    def is_cell_over(self, cell: Cell) -> bool:
        """See `Schedule`."""
        return self._left_of_cell[cell] == 0

    def next_spec(self) -> TrialSpec | None:
        """See `Schedule`."""
        return self._waiting.popleft() if self._waiting else None

    def give_back(self, spec: TrialSpec) -> None:
        """See `Schedule`; it is the next one again."""
        self._waiting.appendleft(spec)

    def record_ended(self, spec: TrialSpec, record: TrialRecord) -> None:
        """See `Schedule`."""
        self._left_of_cell[spec.cell] -= 1

    def in_words(self) -> str:
        """Nothing: the table says how many there were."""
        return ""

    def drop(self, cell: Cell) -> None:
        """Forget the trials of a cell that wait; those under way end and count."""
        others = deque(spec for spec in self._waiting if spec.cell != cell)
        dropped = len(self._waiting) - len(others)
        self._waiting = others
        self._total -= dropped
        self._left_of_cell[cell] -= dropped


def _order(asked: str) -> ScheduleOrder:
    if asked:
        raise ValueError(f"'fixed' takes no question: {asked!r}")
    return ScheduleOrder(make=FixedSchedule)


SCHEDULE = ScheduleKind(name="fixed", words="all that --trials says", order=_order)
