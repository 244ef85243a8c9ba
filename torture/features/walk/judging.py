"""The verdicts of recovered states: by a client's look, the pool's health, and the acknowledgements."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from torture.choices.matrix.cells import ADMINISTRATION
from torture.facts.evidence.cut_document import Confirmation
from torture.facts.evidence.folder import LEDGER, Evidence, load_evidence
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Kind
from torture.features.walk.client_view import ContentChecks
from torture.features.walk.engines.engine import Engine, Recovered
from torture.features.walk.walk_values import (
    PoolHealth,
    StateVerdict,
    Times,
    WalkedRecording,
    judge_state,
)
from torture.oracles.verdict.guarantee import Verdict
from torture.trials.trial.confirm import earlier_cut
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
