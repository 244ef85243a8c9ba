"""Every trial of the draw, in that order, whatever their verdicts; an empty cut is drawn again.

One trial of an earlier run again, under its own name.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from torture.choices.matrix.cells import Cell
from torture.records.record.specs import DRAWN_AGAIN_MAX, TrialSpec, drawn_again
from torture.records.record.trials import Origin, TrialRecord
from torture.records.schedules.protocol import ScheduleKind, ScheduleOrder
from torture.records.tasks.core_tasks import Replay
from torture.records.tasks.protocol import Task


class FixedSchedule:
    """A queue of trials. `drop` is for schedules that make some of them needless.

    A live trial whose cut could take nothing has a successor with a seed drawn from its own. This
    does not hold for a schedule that goes on until it knows enough.
    """

    def __init__(self, specs: Sequence[TrialSpec], *, draws_again: bool = True) -> None:
        self._draws_again = draws_again
        self._drawn_again: Counter[str] = Counter()
        self._waiting = deque(specs)
        self.total = len(specs)
        self._left_of_cell = Counter(spec.cell for spec in specs)

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
        """See `Schedule`; the trial is the next one again."""
        self._waiting.appendleft(spec)

    def record_ended(self, spec: TrialSpec, record: TrialRecord) -> None:
        """See `Schedule`."""
        self._left_of_cell[spec.cell] -= 1
        is_empty = record.cut.is_empty and not record.is_conclusive
        if self._draws_again and is_empty and spec.origin == Origin.LIVE:
            self._draw_again(spec)

    def _draw_again(self, spec: TrialSpec) -> None:
        times = self._drawn_again[spec.trial] + 1
        if times > DRAWN_AGAIN_MAX:
            return
        successor = drawn_again(spec)
        self._drawn_again[successor.trial] = times
        self._waiting.append(successor)
        self.total += 1
        self._left_of_cell[spec.cell] += 1

    def in_words(self) -> str:
        """Nothing: the table has the number of trials."""
        return ""

    def drop(self, is_needless: Callable[[TrialSpec], bool]) -> None:
        """Forget waiting trials; those under way end and count."""
        waiting, self._waiting = self._waiting, deque()
        for spec in waiting:
            if is_needless(spec):
                self.total -= 1
                self._left_of_cell[spec.cell] -= 1
            else:
                self._waiting.append(spec)


def _order(asked: str) -> ScheduleOrder:
    if asked:
        raise ValueError(f"'fixed' takes no question: {asked!r}")
    return ScheduleOrder(make=FixedSchedule)


class ReplaySchedule(FixedSchedule):
    """A schedule of one trial, which repeats another. Raises `ValueError` for one that does not."""

    def __init__(self, spec: TrialSpec) -> None:
        if spec.origin == Origin.LIVE:
            raise ValueError(f"{spec.trial} repeats no trial")
        super().__init__([spec])
        self._spec = spec

    def in_words(self) -> str:
        """The repeated trial, e.g. `replay of iscsi-always-lying-btrfs-bothdie.0000-...`."""
        return f"{self._spec.origin} of {self._spec.repeats}"


def repeat(
    spec: TrialSpec, *, evidence: Path, origin: Origin, task: Task | None = None
) -> TrialSpec:
    """The same trial again: from its recording in that folder, or (`Origin.RERUN`) from its seed.

    `task`: that with the recording; by default its replay. From the seed it is always the first one.
    """
    return replace(
        spec,
        origin=origin,
        repeats=spec.trial,
        replay_of=str(evidence),
        task=(task or Replay()) if origin == Origin.REPLAY else spec.task,
    )


def _refuse(_asked: str) -> ScheduleOrder:
    raise ValueError("a trial is replayed by tools/replay EVIDENCE, in a run of its own")


SCHEDULES = (
    ScheduleKind(name="fixed", words="as many trials as --trials", order=_order),
    ScheduleKind(name="replay", words="a trial again, by tools/replay only", order=_refuse),
)
