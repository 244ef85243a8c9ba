"""The verdicts of recovered states: by a client's look, the pool's health, and the acknowledgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from msgspec import structs

from torture.choices.matrix.cells import ADMINISTRATION
from torture.facts.evidence.cut_document import Confirmation
from torture.facts.evidence.folder import LEDGER, Evidence, load_evidence
from torture.facts.recording.crash_state import CrashState, Torn, require_legal
from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.intent_log import role_of
from torture.features.walk.client_view import ContentChecks
from torture.features.walk.documents import DroppedWrite, WalkedLoss
from torture.features.walk.engines.engine import Engine, Recovered
from torture.features.walk.states.states import DistinctState
from torture.features.walk.walk_values import (
    LostState,
    PoolHealth,
    StateVerdict,
    Times,
    WalkedRecording,
    judge_state,
)
from torture.oracles.verdict.guarantee import Verdict
from torture.trials.trial.cut import earlier_cut
from torture.trials.trial.shared.machines import PowerCut, Trial


class StateJudge:
    """Judges each content once, for each health of the pool and number of acknowledgements.

    `walked`: the recording whose states are judged now.
    """

    def __init__(
        self,
        trial: Trial,
        cut: PowerCut,
        contents: ContentChecks,
        *,
        walked: WalkedRecording,
        times: Times,
    ) -> None:
        self._trial = trial
        self._cut = cut
        self._contents = contents
        self.walked = walked
        self._times = times
        self._live = load_evidence(trial.folder)
        self._ledger = (trial.folder / LEDGER).read_bytes()
        self._marks = [event.seq for event in cut.recording.events if event.kind is Kind.MARK]
        self._judged: dict[tuple[str, PoolHealth | None, int], StateVerdict] = {}

    def hung(self, state: CrashState, reason: str) -> StateVerdict:
        """The verdict of a state that hung a machine, or crashed its kernel."""
        return StateVerdict(
            verdict=Verdict.UNAVAILABLE,
            acknowledged=self.cut_of(state).acknowledged or 0,
            lost=0,
            reasons=(reason,),
        )

    def is_known(self, end: Recovered) -> bool:
        """Whether a client need not look at the content."""
        return bool(end.refusal) or self._contents.seen(end.content) is not None

    def judge(self, state: CrashState, end: Recovered, engine: Engine | None) -> StateVerdict:
        """The verdict of the end of a recovery. The engine still has its content, if it is a new one.

        Raises what `ContentChecks.inspect` raises.
        """
        if end.refusal:
            return self.verdict_of(
                self._live, state, is_imported=end.is_imported, health=None, refusal=end.refusal
            )
        marks = sum(1 for seq in self._marks if seq <= self.walked.acknowledged_by(state))
        key = end.content, end.health, marks
        if key not in self._judged:
            look = self._look(end.content, engine)
            known = self.verdict_of(look, state, is_imported=True, health=end.health)
            self._judged[key] = known
        return self._judged[key]

    def verdict_of(
        self,
        look: Evidence,
        state: CrashState,
        *,
        is_imported: bool,
        health: PoolHealth | None,
        refusal: str = "",
    ) -> StateVerdict:
        """The verdict by a client's look, and by the acknowledgements before the state's cut."""
        earlier = self.cut_of(state)
        lived = replace(
            self._live,
            cut=structs.replace(self._live.cut, confirmed=earlier),
            ledger=earlier.ledger_of(self._ledger),
        )
        seen = replace(lived, tools=look.tools, readbacks=look.readbacks)
        trial = self._trial
        return judge_state(
            trial.cell,
            seen,
            is_imported=is_imported,
            refusal=refusal,
            health=health,
            # a disk that an administration adds or removes may be missing, too
            lacks_disks=trial.disks_left != trial.disks or trial.cell[ADMINISTRATION] is not None,
        )

    def cut_of(self, state: CrashState) -> Confirmation:
        """The cut of the load that led to this state."""
        return earlier_cut(
            self._cut.recording,
            state,
            at=self.walked.acknowledged_by(state),
            last=self._cut.seq,
            t_ms=self._cut.t_ms,
            finding="a walked state lost something",
        )

    def _look(self, content: str, engine: Engine | None) -> Evidence:
        """A client's look at the state that was just recovered, or at an equal one before."""
        if (seen := self._contents.seen(content)) is not None:
            return seen
        assert engine is not None, "only a content that was looked at is proven"
        with self._times.checking():
            return self._contents.inspect(content, engine)


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
