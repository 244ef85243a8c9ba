"""Another recovery of the disks that a recording has."""

from __future__ import annotations

from typing import ClassVar

from torture.records.tasks.protocol import Task


class Replay(Task, frozen=True, kw_only=True, tag="replay"):
    """The recording is that of the repeated trial."""

    is_recorded: ClassVar[bool] = True


TASK = Replay
