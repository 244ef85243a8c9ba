"""What a schedule is: it hands out the trials of a run, hears how they end, and says what is left.

A schedule knows no workers, no threads and no clock: `torture.trials.campaign` asks it, one
question at a time. To add one, write a file beside this one that says `SCHEDULE =
ScheduleKind(...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torture.choices.matrix.cells import Cell
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord


class Schedule(Protocol):
    """The trials of one run. Whoever asks it holds a lock: it is not thread-safe.

    Each trial that `next_spec` gave comes back once, by `give_back` or by `record_ended`.
    """

    @property
    def total(self) -> int:
        """Trials in all, those that have ended too, without those that nobody needs any more."""

    @property
    def is_over(self) -> bool:
        """Whether every trial has ended or is needless."""

    def is_cell_over(self, cell: Cell) -> bool:
        """Whether every trial of this cell has ended or is needless; so of a cell it has none of."""

    def next_spec(self) -> TrialSpec | None:
        """The trial to begin next; None while there is none.

        Trials under way may then still be given back, or show that more are needed.
        """

    def give_back(self, spec: TrialSpec) -> None:
        """A trial that was handed out could not be begun: another worker may."""

    def record_ended(self, spec: TrialSpec, record: TrialRecord) -> None:
        """A trial that was handed out has ended, with this record, conclusive or not."""

    def in_words(self) -> str:
        """What the summary of a run says of it, one line; empty when there is nothing to say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleOrder:
    """A schedule as a run asks for it, before the run's trials are known."""

    make: Callable[[Sequence[TrialSpec]], Schedule]
    """The schedule of these trials, which come in the order in which they were drawn."""
    question: str = ""
    """At whose answer a cell stops. Empty when verdicts do not decide about that; else intervals have
    to allow for it (`torture.facts.stats.sequential`)."""
    trials: int = 1
    """Of each cell, when the user does not say."""
    text: str = ""
    """What was asked for, e.g. `until:upper<0.01`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleKind:
    """What a file of this folder offers, as `SCHEDULE`."""

    name: str
    words: str
    """For `--help`."""
    order: Callable[[str], ScheduleOrder]
    """What is asked for by the text after the name; raises `ValueError` that says what is wrong."""
