"""A load, and a cut of the power in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torture.records.tasks.protocol import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut(Task):
    """The plan of the trial has the moment."""

    kind: ClassVar[str] = "cut"


TASK = Cut
