"""The form of a course."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torture.records.tasks.protocol import Task
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

Stages = Callable[[Trial, Machines, EvidenceWriter], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """The stages of a task; they raise `HarnessError` for a failure of the machinery.

    Something that does not come back after a cut is evidence, and ends the stages early.
    """

    task: type[Task]
    stages: Stages
    makes_recording: bool = True
    """Whether the recording of the disks is evidence of this trial."""
