"""The search for the first version that loses: which version to try, how often, and when to stop.

First the ends are tried. The last version has to lose, and the first one has to lose less. Then each
step tries the version that is as probably with the bug as without it. So trials go where they tell most,
and a version that loses seldom is tried more often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torture.errors import HarnessError
from torture.facts.stats.change_point import (
    Tried,
    credible,
    first_probabilities,
    shared_probability,
    to_try_next,
)
from torture.trials.bisect.journal import Journal, Step, tried_of
from torture.trials.bisect.searched_versions import Versions

LOSSES_OF_LAST = 2
"""So many must be seen at the last version, or the search has nothing to look for."""
TRIALS_MAX = 64
"""Of one version: a cell that loses less often takes too long."""
_SHARED_MAX = 0.05
"""The ends differ if this is the probability, at most, that they do not."""


class Trier(Protocol):
    """Tries versions."""

    def try_version(self, number: int, *, batch: int) -> Step:
        """Some trials of a version. `batch`: how many steps of it were before, which draws the trials."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The versions one of which is the first that loses, and the probability that it is."""

    versions: tuple[int, ...]
    """Their numbers. Several where those between them cannot be tried."""
    certainty: float


class Search:
    """A search over versions; its journal has all that it knows, of earlier runs, too."""

    def __init__(
        self,
        versions: Versions,
        trier: Trier,
        journal: Journal,
        *,
        certainty: float,
        say: Callable[[str], None],
    ) -> None:
        self._versions = versions
        self._trier = trier
        self._journal = journal
        self._certainty = certainty
        self._say = say
        self._steps = journal.steps()

    def run(self) -> Found:
        """Search to the end. Raises `HarnessError` where the ends do not differ or cannot be tried."""
        self._try_ends()
        while True:
            probabilities = self._probabilities()
            following = to_try_next(probabilities, self._untriable())
            if max(probabilities) >= self._certainty or following is None:
                found = credible(probabilities, self._certainty)
                certainty = sum(probabilities[number] for number in found)
                return Found(versions=tuple(found), certainty=certainty)
            left = len(credible(probabilities, self._certainty))
            self._say(f"{left} versions left")
            self._try(following)

    def _try_ends(self) -> None:
        first, last = 0, len(self._versions.names) - 1
        while self._tried(last).losses < LOSSES_OF_LAST:
            if self._tried(last).trials >= TRIALS_MAX:
                raise HarnessError(
                    f"{self._words(last)} lost something in {self._share(last)} trials",
                    hint="choose a cell that loses more often, or a longer --duration",
                )
            self._try(last, must_be_tried=True)
        while self._shared() > _SHARED_MAX:
            following = min(first, last, key=lambda end: self._tried(end).trials)
            is_hopeless = self._shared() > 1 - _SHARED_MAX and self._tried(first).losses > 1
            if is_hopeless or self._tried(following).trials >= TRIALS_MAX:
                raise HarnessError(
                    f"{self._words(first)} lost something in {self._share(first)} trials, "
                    f"{self._words(last)} in {self._share(last)}",
                    hint="choose another --good, or a cell that loses more often",
                )
            self._try(following, must_be_tried=True)

    def _try(self, number: int, *, must_be_tried: bool = False) -> None:
        name = self._versions.names[number]
        batch = sum(step.version == name for step in self._steps)
        self._say(f"trying {self._words(number)}")
        step = self._trier.try_version(number, batch=batch)
        if step.skipped and must_be_tried:
            raise HarnessError(
                f"{self._words(number)} cannot be tried: {step.skipped}",
                hint="choose another end for the search",
            )
        self._journal.add(step)
        self._steps.append(step)
        self._say(f"  {step.skipped or f'lost something in {self._share(number)} trials'}")

    def _probabilities(self) -> list[float]:
        tried = {number: self._tried(number) for number in range(len(self._versions.names))}
        return first_probabilities(len(tried), tried)

    def _untriable(self) -> frozenset[int]:
        """Those that were skipped, or tried often enough."""
        skipped = {step.version for step in self._steps if step.skipped}
        return frozenset(
            number
            for number, name in enumerate(self._versions.names)
            if name in skipped or self._tried(number).trials >= TRIALS_MAX
        )

    def _tried(self, number: int) -> Tried:
        return tried_of(self._steps, self._versions.names[number])

    def _shared(self) -> float:
        return shared_probability(self._tried(0), self._tried(len(self._versions.names) - 1))

    def _share(self, number: int) -> str:
        tried = self._tried(number)
        return f"{tried.losses} of {tried.trials}"

    def _words(self, number: int) -> str:
        return self._versions.words(number)
