"""A load, and a cut of the power in it."""

from __future__ import annotations

from torture.records.tasks.protocol import Task


class Cut(Task, frozen=True, kw_only=True, tag="cut"):
    """The plan of the trial has the moment."""


TASK = Cut
