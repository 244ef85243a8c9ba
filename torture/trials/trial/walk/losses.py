"""The states of a walk that lost something, and the smallest state of each kind of loss."""

from __future__ import annotations

from collections.abc import Callable

from torture.facts.evidence.walk_document import WalkedLoss
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.legal import require_legal
from torture.facts.states.states import DistinctState
from torture.records.scoring.walked import StateVerdict
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.ground import Ground, LostState
from torture.trials.trial.walk.judging import StateJudge
from torture.trials.trial.walk.shrink import dropped_writes, smallest

_LOSSES_KEPT = 20
_KINDS_SHRUNK_MAX = 4
"""More of them, each with up to 100 recoveries, would take the time of the walk."""


class Losses:
    """Keeps losses. Each raises `HarnessError` for a loss in a state that no cut leaves: it is no loss.

    `show` gets the progress in words.
    """

    def __init__(self, trial: Trial, judge: StateJudge, show: Callable[[str], None]) -> None:
        self._disks = trial.disks_left
        self._names = [disk.serial for disk in trial.disks_left]
        self._judge = judge
        self._show = show
        self.first: LostState | None = None
        """The state for a fresh NAS to recover."""
        self.kept: tuple[WalkedLoss, ...] = ()
        self._kinds: list[StateVerdict] = []
        """The first loss of each kind, which the smallest state of its kind stands for."""

    def keep_fresh(self, ground: Ground, state: CrashState) -> None:
        """Keep a loss that a fresh NAS shows, and the engine did not: it is the trial's."""
        require_legal(ground.recording, state, self._disks)
        if self.first is None:
            self.first = LostState(state=state, cut=self._judge.cut_of(state))

    def keep(
        self,
        ground: Ground,
        state: DistinctState,
        judged: StateVerdict,
        judge: Callable[[DistinctState], StateVerdict],
        *,
        is_over: Callable[[], bool],
    ) -> None:
        """Keep a loss; `judge` recovers smaller ones, with the engine that shows it."""
        recording = ground.recording
        require_legal(recording, state.crash_state(recording, self._names), self._disks)
        is_new = len(self._kinds) < _KINDS_SHRUNK_MAX and not any(
            judged.is_kind_of(known) for known in self._kinds
        )
        if len(self.kept) >= _LOSSES_KEPT and not is_new:
            return
        dropped = None
        if is_new:
            self._kinds.append(judged)
            self._show(f"shrink loss {len(self._kinds)}")
            shrunk = smallest(state, judged, judge, is_over=is_over)
            if shrunk is not None:  # else it came by chance: the state is kept as found
                state, judged = shrunk
                dropped = dropped_writes(state, recording)
        crash_state = state.crash_state(recording, self._names)
        require_legal(recording, crash_state, self._disks)
        cut = self._judge.cut_of(crash_state)
        if self.first is None:
            self.first = LostState(state=crash_state, cut=cut)
        loss = WalkedLoss(
            verdict=judged.verdict,
            acknowledged=judged.acknowledged,
            lost=judged.lost,
            reasons=judged.reasons,
            view=cut.view,
            unflushed=len(state.survivors) + len(state.dropped),
            dropped=dropped,
        )
        self.kept = (*self.kept, loss)
