"""One trial of an earlier run again, under its own name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin
from torture.records.schedules.fixed import FixedSchedule
from torture.records.schedules.protocol import ScheduleKind, ScheduleOrder
from torture.records.tasks.protocol import Task
from torture.records.tasks.replay_task import Replay


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


def _order(_asked: str) -> ScheduleOrder:
    raise ValueError("a trial is replayed by tools/replay EVIDENCE, in a run of its own")


SCHEDULE = ScheduleKind(name="replay", words="a trial again, by tools/replay only", order=_order)
