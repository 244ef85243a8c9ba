"""The form of a course."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torture.facts.zfs.versions import ZfsVersion
from torture.machines.images.source_trees import SourceTree
from torture.records.tasks.protocol import Task
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

Progress = Callable[[str], None]
Prepare = Callable[[ZfsVersion, SourceTree | None, Progress], None]
"""Takes the NAS's ZFS, and its source tree where it is not Debian's."""


def nothing_to_prepare(zfs: ZfsVersion, tree: SourceTree | None, progress: Progress) -> None:
    """Most courses need images alone."""
    del zfs, tree, progress


Stages = Callable[[Trial, Machines, EvidenceWriter], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """The stages of a task; they raise `HarnessError` for a failure of the machinery.

    Something that does not come back after a cut is evidence, and ends the stages early.
    """

    task: type[Task]
    stages: Stages
    prepare: Prepare = nothing_to_prepare
    """Builds the programs that it needs, beside images."""
    makes_recording: bool = True
    """Whether the recording of the disks is evidence of this trial."""
