"""The tasks of the core: a cut, and its replay.

Another recovery of the disks that a recording has.
"""

from __future__ import annotations

from typing import ClassVar

from torture.records.tasks.protocol import Task


class Cut(Task, frozen=True, kw_only=True, tag="cut"):
    """The plan of the trial has the moment."""


class Replay(Task, frozen=True, kw_only=True, tag="replay"):
    """The recording is that of the repeated trial."""

    is_recorded: ClassVar[bool] = True


TASKS = (Cut, Replay)
