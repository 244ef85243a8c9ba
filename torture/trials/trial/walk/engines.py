"""The engines of a walk: the kernel's ZFS, and a quicker scout where one is asked for.

The scout never decides alone. A state that it cannot recover, or recovers with a loss, is recovered
again by the kernel's ZFS.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from pathlib import Path

from torture.facts.evidence.walk_document import WalkDocument
from torture.facts.recording.crash_state import CrashState
from torture.machines.lab.machine import GuestDied
from torture.trials.trial.shared.storage import StorageFailed
from torture.trials.trial.walk.engine import Engine, GaveUp, Recovered
from torture.trials.trial.walk.ranges import Ranges, grains_with_data


class Engines:
    """Each engine is started on its first use, and again after a state that ended it.

    `document` counts their recoveries. `written`: the grains of the volume that the client was asked
    to write; None where its requests are unknown.
    """

    def __init__(
        self,
        *,
        start_kernel: Callable[[CrashState], Engine],
        start_scout: Callable[[CrashState], Engine] | None,
        written: Set[int] | None,
        scratch: Path,
    ) -> None:
        self._start_kernel = start_kernel
        self._start_scout = start_scout
        self._written = written
        self._scratch = scratch
        self._kernel: Engine | None = None
        self._scout: Engine | None = None
        self._last: Engine | None = None
        self._scouted: tuple[CrashState, Recovered] | None = None
        self._ranges: Ranges | None = None
        self.document = WalkDocument()

    @property
    def has_scout(self) -> bool:
        """Whether states are recovered by the scout first."""
        return self._start_scout is not None

    def recover(self, state: CrashState, *, again: bool = False) -> Recovered:
        """Recover a state with the kernel's ZFS, `again`: twice.

        Raises what `Engine.recover` raises.
        """
        recovered = self._started_kernel(state).recover(state)
        self._last = self._kernel
        if self._scouted is not None and self._scouted[0] == state:
            self._compare(self._scouted[1], recovered)
            self._scouted = None
        return self._repeated(self._started_kernel(state), state, recovered) if again else recovered

    def scout(self, state: CrashState, *, again: bool = False, compared: bool = False) -> Recovered:
        """Recover a state with the scout, `again`: twice, `compared`: with the kernel's ZFS, too.

        Raises `GaveUp` for a state that only the kernel's ZFS can recover.
        """
        self._scouted = None
        try:
            scout = self._started_scout(state)
            recovered = scout.recover(state)
            if again:
                recovered = self._repeated(scout, state, recovered)
        except GaveUp:
            self._count(given_up=1)
            raise
        self._scouted = (state, recovered)
        if compared:
            self._recover_beside(state, recovered)
        self._last = scout
        return recovered

    def copy_volume(self, into: Path) -> None:
        """The volume of the state that was recovered last."""
        assert self._last is not None, "no state was recovered"
        self._last.copy_volume(into)

    def end_kernel(self) -> None:
        """End the NAS of the kernel's ZFS, which a state hung or crashed."""
        if self._kernel is not None:
            self._kernel.close()
        self._kernel = None

    def close(self) -> None:
        """End all engines."""
        self.end_kernel()
        if self._scout is not None:
            self._scout.close()
        self._scout = None

    def _recover_beside(self, state: CrashState, scouted: Recovered) -> None:
        """Compare with the kernel's ZFS, which a state may hang or crash."""
        try:
            self.recover(state)
        except (StorageFailed, GuestDied) as failure:
            if isinstance(failure, GuestDied) and not failure.kernel_crashed:
                raise
            self.end_kernel()
            self._compare(scouted, Recovered(is_imported=False))

    def _started_kernel(self, first: CrashState) -> Engine:
        if self._kernel is None:
            self._kernel = self._start_kernel(first)
            self._limit(self._kernel, first)
        return self._kernel

    def _started_scout(self, first: CrashState) -> Engine:
        if self._scout is None:
            assert self._start_scout is not None, "no scout was asked for"
            self._scout = self._start_scout(first)
            try:
                self._limit(self._scout, first)
            except GaveUp:  # both engines must read the same parts, or their contents differ
                self._started_kernel(first)
                self._limit(self._scout, first)
        return self._scout

    def _limit(self, engine: Engine, first: CrashState) -> None:
        """Let an engine read only the parts of the volume that hold data in any state."""
        if self._ranges is None and self._written is not None:
            image = self._scratch / "whole.raw"
            if not engine.recover(first).is_imported:
                return
            engine.copy_volume(image)
            self._ranges = Ranges.of_grains(grains_with_data(image) | self._written)
            image.unlink()
        if self._ranges is not None:
            engine.take_ranges(self._ranges)

    def _repeated(self, engine: Engine, state: CrashState, recovered: Recovered) -> Recovered:
        second = engine.recover(state)
        self._count(repeated=1, differing=int(second.content != recovered.content))
        return second

    def _compare(self, scouted: Recovered, recovered: Recovered) -> None:
        self._count(compared=1, disagreeing=int(not scouted.is_like(recovered)))

    def _count(
        self,
        *,
        repeated: int = 0,
        differing: int = 0,
        compared: int = 0,
        disagreeing: int = 0,
        given_up: int = 0,
    ) -> None:
        so_far = self.document
        self.document = replace(
            so_far,
            repeated=so_far.repeated + repeated,
            differing=so_far.differing + differing,
            compared=so_far.compared + compared,
            disagreeing=so_far.disagreeing + disagreeing,
            given_up=so_far.given_up + given_up,
        )
