"""The recovery of many crash states of one recording."""

from __future__ import annotations

from typing import ClassVar

from torture.facts.evidence.folder import Part
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.records.tasks.protocol import Task

WALKED = "walked"
"""The origin of a live trial whose recording's other crash states were recovered, too. Its own state is
the worst of these: no random cut."""
WALK_MINUTES = 20
"""The time of a walk without a choice of the user."""
FRESH_S = 30
"""The time for each fresh recovery of a content; under emulation it takes some 20 s."""


class Walk(Task, frozen=True, kw_only=True, tag="walk"):
    """The recording is that of the trial's own load."""

    origin: ClassVar[str] = WALKED
    takes_all_cuts: ClassVar[bool] = True
    leaves: ClassVar[type[Part] | None] = WalkDocument
    runs_terms: ClassVar[str] = "walks"

    states: int
    """The number of crash states to recover."""
    engine: WalkEngine = WalkEngine.KERNEL
    """The code that recovers them."""
    fresh: int = 0
    """The number of contents for each of which a fresh NAS recovers a state once more."""
    minutes: int = WALK_MINUTES
    """The walk ends after this time, whatever is left; fresh recoveries of contents come on top."""

    @property
    def longer_s(self) -> float:
        """The time of the walk at most, with the fresh recoveries."""
        return self.minutes * 60 + self.fresh * FRESH_S

    @property
    def run_terms(self) -> tuple[str | int, ...]:
        """States and engine, and each other choice of the user."""
        fresh = (f"fresh {self.fresh}",) if self.fresh else ()
        minutes = (f"{self.minutes} min",) if self.minutes != WALK_MINUTES else ()
        return (self.states, str(self.engine), *fresh, *minutes)


class WalkAround(Walk, frozen=True, kw_only=True, tag="walk-around"):
    """The recording is that of the repeated trial, and the states are those nearest to its cut."""

    is_recorded: ClassVar[bool] = True
    origin: ClassVar[str] = ""


TASKS = (Walk, WalkAround)
