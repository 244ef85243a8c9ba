"""The tasks of the core: a cut, and its replay.

Another recovery of the disks that a recording has.
"""

from __future__ import annotations

from typing import ClassVar

from torture.records.tasks.protocol import Task


class Cut(Task, frozen=True, kw_only=True, omit_defaults=True, tag="cut"):
    """The plan of the trial has the moment."""

    keeps_drawn: bool = False
    """Whether the drawn cut is recovered even where the audit finds an earlier one that loses.

    The rate of a target that breaks promises all the time needs it: else each of its cuts is chosen.
    """


class Replay(Task, frozen=True, kw_only=True, tag="replay"):
    """The recording is that of the repeated trial."""

    is_recorded: ClassVar[bool] = True


TASKS = (Cut, Replay)
