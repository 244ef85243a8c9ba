"""The values of a walk: its recording, the ends of its recoveries, and its times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from msgspec.structs import replace

from torture.facts.evidence.cut_document import Confirmation
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Recording
from torture.features.walk.documents import WalkDocument
from torture.features.walk.state_verdict import PoolHealth, StateVerdict


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkedRecording:
    """A recording whose states are walked.

    `acknowledged`: the event of the load's recording up to which acknowledgements count. None: up to
    each state's own cut, for this is the load's recording.
    """

    recording: Recording
    latest: CrashState
    """A state of its end: its volume has data wherever another state's has, and its disks partitions."""
    acknowledged: int | None = None

    def acknowledged_by(self, state: CrashState) -> int:
        """The event up to which acknowledgements count in this state."""
        return state.cut if self.acknowledged is None else self.acknowledged


@dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """A recorded cut around whose states a walk goes."""

    state: CrashState
    """Its state; that of a cut amid a recovery has another recording than the load's."""
    acknowledged: int
    """The event of the load's recording up to which acknowledgements count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LostState:
    """A state that lost something, and its cut."""

    state: CrashState
    cut: Confirmation


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstEnd:
    """The end of the first recovery to a content."""

    state: CrashState
    verdict: StateVerdict
    health: PoolHealth | None
    """The pool's; a proven end has that of the recovery that proves it."""


_HUNDRED = 100


class Times:
    """The time of each recovery, and of each check of a content."""

    def __init__(self) -> None:
        self._recovering_s: list[float] = []
        self._checking_s: list[float] = []

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """Count the block as a recovery."""
        with _counted(self._recovering_s):
            yield

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Count the block as a check of a content."""
        with _counted(self._checking_s):
            yield

    def with_sums(self, document: WalkDocument) -> WalkDocument:
        """The document with the sums of both."""
        return replace(
            document,
            recovering_ms=round(sum(self._recovering_s) * 1000),
            checking_ms=round(sum(self._checking_s) * 1000),
        )

    def with_drift(
        self, document: WalkDocument, *, available_mib: Callable[[], int | None]
    ) -> WalkDocument:
        """The document with the first and the last hundred recoveries, and the memory after each.

        `available_mib`: the memory that the NAS has left; None where it recovers only few states.
        """
        times_s = self._recovering_s
        hundreds = len(times_s) // _HUNDRED
        if hundreds >= 2:  # else the first hundred would hold a part of the last one
            first_ms, last_ms = _median_ms(times_s[:_HUNDRED]), _median_ms(times_s[-_HUNDRED:])
            document = replace(document, first_ms=first_ms, last_ms=last_ms)
        known = document.nas_available_mib
        if hundreds > len(known) and (mib := available_mib()) is not None:
            document = replace(document, nas_available_mib=(*known, mib))
        return document


@contextmanager
def _counted(into: list[float]) -> Iterator[None]:
    begun_s = time.monotonic()
    try:
        yield
    finally:
        into.append(time.monotonic() - begun_s)


def _median_ms(times_s: Sequence[float]) -> int:
    return round(median(times_s) * 1000)
