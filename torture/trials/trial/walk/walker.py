"""Recovers states one after the other, judges and counts them, and keeps the losses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torture.facts.evidence.cut_document import Confirmation
from torture.facts.evidence.folder import LEDGER, Evidence, load_evidence
from torture.facts.evidence.walk_document import DroppedWrite, WalkDocument, WalkedLoss, WalkEngine
from torture.facts.recording.crash_state import CrashState, Survivor
from torture.facts.recording.events import Kind
from torture.facts.recording.roles import role_of
from torture.facts.states.states import DistinctState
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import GuestDied
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.walked import StateVerdict, judge_state
from torture.trials.trial.confirm import earlier_cut
from torture.trials.trial.shared.machines import PowerCut
from torture.trials.trial.shared.storage import StorageFailed
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.content_checks import ContentChecks
from torture.trials.trial.walk.engines.engine import GaveUp, Recovered
from torture.trials.trial.walk.engines.engines import engines_of
from torture.trials.trial.walk.ground import FirstEnd, Ground, LostState
from torture.trials.trial.walk.shrink import smallest
from torture.trials.trial.walk.times import Times

_LOSSES_KEPT = 20
_KINDS_SHRUNK_MAX = 4
"""More of them, each with up to 100 recoveries, would take the time of the walk."""
_REPEATED_EVERY = 50
"""One state in so many is recovered twice, and by both engines where that is asked for. One that is
proven equal to an earlier one is recovered all the same."""
_COMPARED_FIRST = 4
"""So many first states are recovered by both engines: a mistake of all states shows at once."""
_SHOWN_EVERY = 10
"""The live line shows one state in so many."""


class Walker:
    """The engine, the states so far, and their outcomes.

    `show` gets the progress in words.
    """

    def __init__(
        self,
        trial: Trial,
        lab: Lab,
        cut: PowerCut,
        contents: ContentChecks,
        *,
        ground: Ground,
        folder: Path,
        show: Callable[[str], None],
    ) -> None:
        self._trial = trial
        self._lab = lab
        self._cut = cut
        self._live = load_evidence(trial.folder)
        self._ledger = (trial.folder / LEDGER).read_bytes()
        self._contents = contents
        self._folder = folder
        self.show = show
        """Says on the live line how far the walk is."""
        self._names = [disk.serial for disk in trial.disks_left]
        self.ground = ground
        """The recording whose states are walked now."""
        self._engines = engines_of(
            trial,
            lab,
            folder=folder,
            recording=lambda: self.ground.recording,
            first=lambda: self.ground.latest,
        )
        self._judged: dict[tuple[str, int], StateVerdict] = {}
        self._seen: Counter[str] = Counter()
        self._content = ""
        """That of the state judged last; empty where it has none."""
        self._health = ""
        self._is_proven = False
        """Whether that state has its content by a proof, without a recovery."""
        self._states: Counter[str] = Counter()
        self._times = Times()
        self._outcomes: Counter[str] = Counter()
        self.first_ends: dict[str, FirstEnd] = {}
        """Of each content the first state of the load's recording that had it."""
        self._ends: Counter[tuple[str, int, tuple[str, ...]]] = Counter()
        self._unknown: Counter[str] = Counter()
        self._marks = [event.seq for event in cut.recording.events if event.kind is Kind.MARK]
        self.document = WalkDocument(engine=trial.spec.walk_engine, depth=1)
        self._shrunk: list[StateVerdict] = []
        """The first loss of each kind, which the smallest state of its kind stands for."""
        self.first_loss: LostState | None = None
        self._reached_new: DistinctState | None = None
        """Of the states recovered last, the latest that ran code of ZFS which none before it had run."""
        self._intact: set[int] = set()
        self._until_s = 0.0

    def recover_all(
        self, ground: Ground, states: Sequence[DistinctState], *, until_s: float
    ) -> None:
        """Recover and judge the states, until the time is up."""
        self.ground, self._until_s = ground, until_s
        self._reached_new, self._intact = None, set()
        begun_s, earlier_ms = time.monotonic(), self.document.walked_ms
        for number, state in enumerate(states):
            if self._is_over():
                break
            if number % _SHOWN_EVERY == 0:
                self.show(f"walk {self._states.total()}")
            reached = self._engines.reached_new
            judged = self._judge_state(state, number=number)
            if judged.verdict is Verdict.INTACT:
                self._intact.add(state.key)
                if self._engines.reached_new > reached:
                    self._reached_new = state
            self._states["proven" if self._is_proven else "recovered"] += 1
            self._seen.update(filter(None, [self._content]))
            if self._content and ground.acknowledged is None:
                own = state.crash_state(ground.recording, self._names)
                end = FirstEnd(state=own, verdict=judged, health=self._health)
                self.first_ends.setdefault(self._content, end)
            self._outcomes[judged.verdict] += 1
            self._ends[judged.verdict, judged.lost, judged.reasons] += 1
            if judged.verdict is Verdict.INCONCLUSIVE:
                self._unknown.update(judged.reasons[:1])
            elif judged.loses:
                self._keep_loss(state, judged)
            walked_ms = round((time.monotonic() - begun_s) * 1000)
            self._count(walked_ms=earlier_ms + walked_ms)

    def _is_over(self) -> bool:
        return time.monotonic() > self._until_s

    def next_root(self, states: Sequence[DistinctState]) -> DistinctState | None:
        """The state whose recovery is to be cut: of those recovered last, one that lost nothing."""
        first = next((state for state in states if state.key in self._intact), None)
        return self._reached_new or first

    def _count(self, *, walked_ms: int) -> None:
        is_nested, counted = self.ground.acknowledged is not None, self._engines.document
        coverage = self._engines.coverage
        if not is_nested:
            available_mib = self._engines.nas_available_mib
            self.document = self._times.with_drift(self.document, available_mib=available_mib)
        self.document = replace(
            self._times.with_sums(self.document),
            recovered=self._states["recovered"],
            proven=self._states["proven"],
            amid_recovery=self.document.amid_recovery + is_nested,
            repeated=counted.repeated,
            differing=counted.differing,
            proofs_repeated=counted.proofs_repeated,
            proofs_differing=counted.proofs_differing,
            compared=counted.compared,
            disagreeing=counted.disagreeing,
            given_up=counted.given_up,
            contents=self._contents.known,
            seen_once=_number_of_ones(self._seen),
            ends=len(self._ends),
            ends_seen_once=_number_of_ones(self._ends),
            outcomes=dict(self._outcomes),
            unknown=dict(self._unknown),
            coverage=None if coverage is None else coverage.document,
            walked_ms=walked_ms,
        )

    def count_fresh(self, state: CrashState, *, loses: bool, differs: bool) -> None:
        """Count a recovery by a fresh NAS; a loss that the engine did not find is the trial's."""
        self.document = replace(
            self.document,
            fresh=self.document.fresh + 1,
            fresh_differing=self.document.fresh_differing + differs,
        )
        if loses and self.first_loss is None:
            self.first_loss = LostState(state=state, cut=self.cut_of(state))

    def close(self) -> None:
        """End the engines, and let go of the client; the next recovery starts others."""
        self._contents.give_client_back()
        self._engines.close()

    def verdict_of(
        self, look: Evidence, state: CrashState, *, is_imported: bool, refusal: str = ""
    ) -> StateVerdict:
        """The verdict by a client's look, and by the acknowledgements before the state's cut."""
        earlier = self.cut_of(state)
        lived = replace(
            self._live,
            cut=replace(self._live.cut, confirmed=earlier),
            ledger=earlier.ledger_of(self._ledger),
        )
        seen = replace(lived, tools=look.tools, readbacks=look.readbacks)
        return judge_state(self._trial.cell, seen, is_imported=is_imported, refusal=refusal)

    def cut_of(self, state: CrashState) -> Confirmation:
        """The cut of the load that led to this state."""
        return earlier_cut(
            self._cut.recording,
            state,
            at=self.ground.acknowledged_by(state),
            last=self._cut.seq,
            t_ms=self._cut.t_ms,
            finding="a walked state lost something",
        )

    def _judge_state(self, state: DistinctState, *, number: int | None = None) -> StateVerdict:
        """The verdict; a state that hangs a machine, or crashes its kernel, is unavailable.

        `number`: its place among the states, where it is none of those for a smaller loss.
        """
        crash_state = state.crash_state(self.ground.recording, self._names)
        again = number is not None and number % _REPEATED_EVERY == 0
        self._content, self._is_proven = "", False
        if self._engines.has_scout:
            scouted = self._scouted(crash_state, number=number, again=again)
            if scouted is not None and not scouted.loses:
                return scouted
        self._is_proven = False
        try:
            with self._times.recovering():
                recovered = self._engines.recover(crash_state, again=again)
            judged = self._judge(crash_state, recovered)
            self._engines.require_host()
            return judged
        except (StorageFailed, GuestDied) as failure:
            if isinstance(failure, GuestDied) and not failure.kernel_crashed:
                raise
            self._engines.require_host()
            self._engines.end_kernel()
            return StateVerdict(
                verdict=Verdict.UNAVAILABLE,
                acknowledged=self.cut_of(crash_state).acknowledged or 0,
                lost=0,
                reasons=(str(failure).splitlines()[0],),
            )

    def _scouted(
        self, state: CrashState, *, number: int | None, again: bool
    ) -> StateVerdict | None:
        """The verdict by the scout's recovery; None where the kernel's ZFS has to recover the state."""
        is_both = self._trial.spec.walk_engine is WalkEngine.BOTH
        compared = is_both and (again or (number is not None and number < _COMPARED_FIRST))
        proven = self._engines.proven(state)
        if proven is not None and not (again or compared) and self._is_seen(proven):
            self._is_proven = True
            return self._judge(state, proven)

        def is_compared(recovered: Recovered) -> bool:
            return compared or (is_both and self._is_one_for_fresh_nas(recovered.content))

        try:
            with self._times.recovering():
                recovered = self._engines.scout(
                    state, again=again, is_compared=is_compared, proven=proven
                )
            return self._judge(state, recovered)
        except (GaveUp, StorageFailed):
            return None
        except GuestDied as failure:
            if not failure.kernel_crashed:
                raise
            return None

    def _is_one_for_fresh_nas(self, content: str) -> bool:
        """Whether a fresh NAS will recover this state, as the first one of its content."""
        if not content or content in self.first_ends or self.ground.acknowledged is not None:
            return False
        return len(self.first_ends) < self._trial.spec.walk_fresh

    def _is_seen(self, recovered: Recovered) -> bool:
        """Whether a client need not look at the content."""
        return bool(recovered.refusal) or self._contents.seen(recovered.content) is not None

    def _judge(self, state: CrashState, recovered: Recovered) -> StateVerdict:
        """The verdict by the content and the acknowledgements before the cut."""
        self._content, self._health = recovered.content, recovered.health
        marks = sum(1 for seq in self._marks if seq <= self.ground.acknowledged_by(state))
        known = self._judged.get((recovered.content, marks))
        if known is None or recovered.refusal:
            is_read = not recovered.refusal
            look = self._look(recovered.content) if is_read else self._live
            known = self.verdict_of(look, state, is_imported=is_read, refusal=recovered.refusal)
            self._judged[recovered.content, marks] = known
        return known

    def _look(self, content: str) -> Evidence:
        """A client's look at the state that was just recovered, or at an equal one before."""
        if (seen := self._contents.seen(content)) is not None:
            return seen
        with self._times.checking():
            return self._contents.inspect(content, self._engines)

    def _keep_loss(self, state: DistinctState, judged: StateVerdict) -> None:
        is_new = len(self._shrunk) < _KINDS_SHRUNK_MAX and not any(
            judged.is_kind_of(known) for known in self._shrunk
        )
        if len(self.document.losses) >= _LOSSES_KEPT and not is_new:
            return
        dropped = None
        if is_new:
            self._shrunk.append(judged)
            self.show(f"shrink loss {len(self._shrunk)}")
            shrunk = smallest(state, judged, self._judge_state, is_over=self._is_over)
            if shrunk is not None:  # else it came by chance: the state is kept as found
                state, judged = shrunk
                dropped = tuple(self._described(write, state.torn) for write in state.dropped)
        crash_state = state.crash_state(self.ground.recording, self._names)
        cut = self.cut_of(crash_state)
        if self.first_loss is None:
            self.first_loss = LostState(state=crash_state, cut=cut)
        loss = WalkedLoss(
            verdict=judged.verdict,
            acknowledged=judged.acknowledged,
            lost=judged.lost,
            reasons=judged.reasons,
            view=cut.view,
            unflushed=len(state.survivors) + len(state.dropped),
            dropped=dropped,
        )
        self.document = replace(self.document, losses=(*self.document.losses, loss))

    def _described(self, submission: int, torn: Survivor | None) -> DroppedWrite:
        recording = self.ground.recording
        event = recording.events[submission]
        assert event.disk is not None
        is_write = event.kind is Kind.WRITE_SUBMIT
        return DroppedWrite(
            disk=recording.disks[event.disk].name,
            role=role_of(recording.payload(event)) if is_write else event.kind,
            offset_bytes=event.offset,
            length_bytes=event.length,
            sectors_kept=(
                len(torn.sectors or ()) if torn is not None and torn.submission == submission else 0
            ),
        )


def _number_of_ones(counts: Mapping[Any, int]) -> int:
    return sum(1 for count in counts.values() if count == 1)
