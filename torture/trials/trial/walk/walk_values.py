"""The values of a walk: the walked recording, and the ends of its recoveries."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.evidence.cut_document import Confirmation
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Recording
from torture.records.scoring.walk_verdict import PoolHealth, StateVerdict


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
