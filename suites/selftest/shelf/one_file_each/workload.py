"""A load of one operation, beside which the usual one could run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torture.choices.workloads.protocol import Command, Place, Surroundings, Workload
from torture.facts.axes.axis import Choice
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.guarantee import Terms, Verdict
from torture.oracles.verdict.judgement import Findings


@dataclass(slots=True)
class DummyLoad:
    """It begins another operation whenever it is asked."""

    begun: int = 0
    acknowledged: int = 1
    is_over: bool = False

    def raise_if_over(self) -> None:
        """It never is before the cut."""

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Begin, and be done."""
        self.begun += 1
        self.acknowledged += 1
        return reached()

    def take_ending(self) -> None:
        pass

    def finish(self, *, deadline_s: float) -> None:
        """End."""
        self.is_over = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Dummy(Workload):
    """It acknowledges and keeps nothing, so nothing can be missing."""

    name: str = "dummyload"
    needs_files: bool = False

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The input of the load."""
        return {"seed": seed, "directory": place.directory}

    def prepare(self, job: dict[str, Any]) -> str:
        """One word."""
        return "prepare-dummy"

    def start(self, job: dict[str, Any], surroundings: Surroundings) -> DummyLoad:
        """Start it in the guest."""
        surroundings.guest.start(("dummy-load", str(job["seed"])))
        return DummyLoad()

    def read_back(self, job: dict[str, Any]) -> Command:
        """Read it back."""
        return ("dummy-read", str(job["seed"]))

    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """Everything is there when it was read."""
        is_there = bool(evidence.readbacks[self.readback])
        return Findings(
            verdict=Verdict.INTACT if is_there else Verdict.CORRUPTED,
            acknowledged=2,
            lost=0,
        )


CHOICE: Choice[Workload] = Choice(name="dummyload", value=Dummy(), words="a dummy load")
