"""The states of a walk that lost something, and the smallest state of each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from torture.facts.recording.crash_state import CrashState, Torn, require_legal
from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.roles import role_of
from torture.features.walk.documents import DroppedWrite, WalkedLoss
from torture.features.walk.judging import StateJudge
from torture.features.walk.states.states import DistinctState
from torture.features.walk.walk_values import LostState, StateVerdict, WalkedRecording
from torture.trials.trial.shared.machines import Trial

Dropped = tuple[int, ...]
"""Submissions of the writes that do not survive, ascending."""
_STATES_MAX = 100


def smallest(
    state: DistinctState,
    judged: StateVerdict,
    judge: Callable[[DistinctState], StateVerdict],
    *,
    is_over: Callable[[], bool],
) -> tuple[DistinctState, StateVerdict] | None:
    """A state with the fewest dropped writes that still loses as this one does, and its verdict.

    `judge` recovers some 100 states at most, and one more once the time `is_over`. None when the last
    one no longer loses.
    """

    def loses(part: Dropped) -> bool:
        return not is_over() and judge(state.dropping_only(part)).is_kind_of(judged)

    found = state.dropping_only(fewest(state.dropped, loses, asks_max=_STATES_MAX))
    shown = judge(found)
    return (found, shown) if shown.is_kind_of(judged) else None


def dropped_writes(state: DistinctState, recording: Recording) -> tuple[DroppedWrite, ...]:
    """The writes that a state drops, in words of their disks and roles."""
    return tuple(_described(recording, write, state.torn) for write in state.dropped)


def _described(recording: Recording, submission: int, torn: Torn | None) -> DroppedWrite:
    event = recording.events[submission]
    assert event.disk is not None
    is_write = event.kind is Kind.WRITE_SUBMIT
    sectors = torn[1] if torn is not None and torn[0] == submission else ()
    return DroppedWrite(
        disk=recording.disks[event.disk].name,
        role=role_of(recording.payload(event)) if is_write else event.kind,
        offset_bytes=event.offset,
        length_bytes=event.length,
        sectors_kept=len(sectors),
    )


def fewest(dropped: Sequence[int], loses: Callable[[Dropped], bool], *, asks_max: int) -> Dropped:
    """A part of `dropped` that loses something, while it loses nothing without any one of its writes.

    `loses` is asked once about a part, and at most `asks_max` times; the best part by then is
    returned. All of `dropped` must lose something.
    """
    known: dict[Dropped, bool] = {}

    def lost(part: Dropped) -> bool:
        if part not in known and len(known) < asks_max:
            known[part] = loses(part)
        return known.get(part, False)

    best, pieces = tuple(sorted(dropped)), 2
    if lost(()):
        return ()
    while len(best) > 1:
        parts = _split(best, pieces)
        rests = [tuple(write for write in best if write not in part) for part in parts]
        smaller = next((part for part in (*parts, *rests) if lost(part)), None)
        if smaller is not None:
            pieces = 2 if smaller in parts else max(pieces - 1, 2)
            best = smaller
        elif pieces < len(best):
            pieces = min(2 * pieces, len(best))
        else:
            break
    return best


def _split(writes: Dropped, pieces: int) -> list[Dropped]:
    pieces = min(pieces, len(writes))
    ends = [len(writes) * place // pieces for place in range(pieces + 1)]
    return [writes[begin:end] for begin, end in pairwise(ends)]


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

    def keep_fresh(self, walked: WalkedRecording, state: CrashState) -> None:
        """Keep a loss that a fresh NAS shows, and the engine did not: it is the trial's."""
        require_legal(walked.recording, state, self._disks)
        if self.first is None:
            self.first = LostState(state=state, cut=self._judge.cut_of(state))

    def keep(
        self,
        walked: WalkedRecording,
        state: DistinctState,
        judged: StateVerdict,
        judge: Callable[[DistinctState], StateVerdict],
        *,
        is_over: Callable[[], bool],
    ) -> None:
        """Keep a loss; `judge` recovers smaller ones, with the engine that shows it."""
        recording = walked.recording
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
