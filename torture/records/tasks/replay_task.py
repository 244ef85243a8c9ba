"""Another recovery of the disks that a recording has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torture.records.tasks.protocol import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay(Task):
    """The recording is that of the repeated trial."""

    kind: ClassVar[str] = "replay"
    is_recorded: ClassVar[bool] = True


TASK = Replay
