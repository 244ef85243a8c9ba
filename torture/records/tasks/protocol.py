"""The form of a task."""

from __future__ import annotations

from typing import ClassVar

from torture.facts.evidence.documents import Struct


class Task(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The instructions for the course of a trial; its fields are those of its kind.

    `torture.trials.trial.courses` has the course of each kind.
    """

    has_cut: ClassVar[bool] = True
    """Whether the trial ends with a verdict on a cut."""
    is_recorded: ClassVar[bool] = False
    """Whether the cut is that of another trial's recording."""
    recovers_on_host: ClassVar[bool] = False
    """Whether it needs the programs with which the host recovers a pool."""
    document: ClassVar[str] = ""
    """The evidence that the task itself leaves; without it the trial is inconclusive."""

    @property
    def longer_s(self) -> float:
        """The time that it may take beyond that of a cut."""
        return 0.0

    @property
    def run_terms(self) -> tuple[str | int, ...]:
        """The terms that a run of such tasks has beside its options; `--continue` compares them."""
        return ()
