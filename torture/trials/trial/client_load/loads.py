"""All loads of one client, as one: their counts, and whether they continue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torture.choices.workloads.protocol import RunningLoad
from torture.deadlines import wait_until_true

_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class Loads:
    """The running loads."""

    running: tuple[RunningLoad, ...]

    @property
    def begun(self) -> int:
        """Operations begun so far."""
        return sum(load.begun for load in self.running)

    @property
    def acknowledged(self) -> int:
        """Durable operations acknowledged so far."""
        return sum(load.acknowledged for load in self.running)

    @property
    def are_over(self) -> bool:
        """Whether no load will acknowledge anything more."""
        return all(load.is_over for load in self.running)

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when a load ended before the cut."""
        for load in self.running:
            load.raise_if_over()

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait until something becomes true of them; False when the deadline passed first."""
        if len(self.running) == 1:
            return self.running[0].wait_until(reached, deadline_s=deadline_s)
        return wait_until_true(reached, deadline_s=deadline_s, poll_s=_POLL_S)

    def take_endings(self) -> None:
        """Keep the ending of each load that ended by itself: their client is about to die."""
        for load in self.running:
            load.take_ending()

    def finish(self, *, deadline_s: float) -> None:
        """End them one after another, each within its deadline."""
        for load in self.running:
            load.finish(deadline_s=deadline_s)
