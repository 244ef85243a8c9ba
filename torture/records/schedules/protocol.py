"""A schedule hands out the trials of a run, receives their records, and counts the rest.

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
    """The trials of one run. It is not thread-safe: its caller holds a lock.

    Each trial that `next_spec` gave comes back once, by `give_back` or by `record_ended`.
    """

    @property
    def total(self) -> int:
        """The number of all trials, also of ended ones, but without needless ones."""

    @property
    def is_over(self) -> bool:
        """Whether every trial has ended or is needless."""

    def is_cell_over(self, cell: Cell) -> bool:
        """Whether every trial of this cell has ended or is needless; also for a cell without trials."""

    def next_spec(self) -> TrialSpec | None:
        """The trial to begin next; None while there is none.

        Trials under way may then still be given back, or show that more are needed.
        """

    def give_back(self, spec: TrialSpec) -> None:
        """A trial that was handed out could not be begun: another worker may begin it."""

    def record_ended(self, spec: TrialSpec, record: TrialRecord) -> None:
        """A trial that was handed out has ended, with this record, conclusive or not."""

    def in_words(self) -> str:
        """Its line in the summary of a run; empty when there is nothing to say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleOrder:
    """A schedule of a run whose trials are not known yet."""

    make: Callable[[Sequence[TrialSpec]], Schedule]
    """The schedule of these trials, which come in the order of their draw."""
    question: str = ""
    """The question at whose answer a cell stops. It is empty where verdicts stop no cell. Otherwise
    intervals have to allow for it (`torture.facts.stats.sequential`)."""
    trials: int = 1
    """The number for each cell, without a choice of the user."""
    text: str = ""
    """The user's text, e.g. `until:upper<0.01`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleKind:
    """The offer of a file of this folder, as `SCHEDULE`."""

    name: str
    words: str
    """The text for `--help`."""
    order: Callable[[str], ScheduleOrder]
    """The order for the text after the name; raises `ValueError` that names the mistake."""
