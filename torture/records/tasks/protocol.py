"""The form of a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torture.choices.matrix.cells import Cell
from torture.discovery import offered_by_features
from torture.facts.evidence.documents import Struct
from torture.facts.evidence.folder import Part


class Task(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The instructions for the course of a trial; its fields are those of its kind.

    `torture.trials.trial.courses` has the course of each kind.
    """

    has_cut: ClassVar[bool] = True
    """Whether the trial ends with a verdict on a cut."""
    is_recorded: ClassVar[bool] = False
    """Whether the cut is that of another trial's recording."""
    origin: ClassVar[str] = ""
    """The origin of drawn trials with it; empty for one of the core's (`records.record.trials`)."""
    is_of_cell: ClassVar[bool] = True
    """Whether its drawn trials say something about their cell."""
    takes_all_cuts: ClassVar[bool] = False
    """Whether it takes every cut of the load: the drawn one comes at the load's end."""
    leaves: ClassVar[type[Part] | None] = None
    """The evidence that the task itself leaves; without it the trial is inconclusive."""
    runs_terms: ClassVar[str] = ""
    """The name of its terms in `run.json`."""

    @property
    def longer_s(self) -> float:
        """The time that it may take beyond that of a cut."""
        return 0.0

    @property
    def run_terms(self) -> tuple[str | int, ...]:
        """The terms that a run of such tasks has beside its options; `--continue` compares them."""
        return ()


TaskOf = Callable[[Cell], Task]
"""The task of a repeated trial of this cell; raises `HarnessError` where it does not suit the cell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """A task of a feature, as `tools/replay` takes it."""

    option: str
    """With a number, at least 1."""
    words: str
    task_of: Callable[[int, Cell], Task]
    """As `TaskOf`, with the number."""

    def read(self, text: str) -> TaskOf:
        """The task that this number asks for; raises `ValueError` for one below 1."""
        if (number := int(text)) < 1:
            raise ValueError(text)
        return partial(self.task_of, number)


def repeats() -> tuple[Repeat, ...]:
    """Those of all features."""
    return offered_by_features("repeats", "REPEAT")
