"""A measurement of speed."""

from __future__ import annotations

from torture.features.speed.run.measurement import measure
from torture.features.speed.tasks import MeasureOrder
from torture.trials.trial.courses.protocol import Course
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter


def _measure(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> None:
    order = trial.spec.task
    assert isinstance(order, MeasureOrder), "the course is found by the task"
    measure(trial, order, machines, evidence)


COURSE = Course(task=MeasureOrder, stages=_measure, makes_recording=False)
