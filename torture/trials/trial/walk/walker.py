"""Recovers states one after the other, judges and counts them, and keeps the losses."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torture.facts.evidence.walk_document import WalkDocument, WalkedLoss, WalkEngine
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.legal import require_legal
from torture.facts.states.states import DistinctState
from torture.machines.lab.lab import Lab
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.walked import StateVerdict
from torture.records.tasks.walk_task import Walk
from torture.trials.trial.shared.machines import PowerCut
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.content_checks import ContentChecks
from torture.trials.trial.walk.engines.engines import engines_of
from torture.trials.trial.walk.ground import FirstEnd, Ground, LostState
from torture.trials.trial.walk.judging import StateJudge
from torture.trials.trial.walk.recoveries import Recoveries, Recovery, worst_of
from torture.trials.trial.walk.shrink import dropped_writes, smallest
from torture.trials.trial.walk.times import Times

_LOSSES_KEPT = 20
_KINDS_SHRUNK_MAX = 4
"""More of them, each with up to 100 recoveries, would take the time of the walk."""
_REPEATED_EVERY = 50
"""One state in so many is recovered twice by the same engine."""
CHECKED_MIN = 36
"""So many states of the library are recovered once more: with none wrong, at most one in ten is wrong.
That is the exact interval of 95 % (`torture.facts.stats.rates`)."""
_CHECKED_BY_BOTH = 10
"""With both engines, one state in so many at least."""
_CHECKED_SHARE = 0.15
"""Of the time for a recording's states, that for checks of the library."""
_SHOWN_EVERY = 10
"""The live line shows one state in so many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _ByLibrary:
    """A state that the library alone calls intact."""

    state: DistinctState
    crash_state: CrashState
    recovery: Recovery


class Walker:
    """The engine, the states so far, and their outcomes.

    `show` gets the progress in words.
    """

    def __init__(
        self,
        trial: Trial,
        order: Walk,
        lab: Lab,
        cut: PowerCut,
        contents: ContentChecks,
        *,
        ground: Ground,
        folder: Path,
        show: Callable[[str], None],
    ) -> None:
        self._trial = trial
        self._order = order
        self._contents = contents
        self.show = show
        """Says on the live line how far the walk is."""
        self._names = [disk.serial for disk in trial.disks_left]
        self.ground = ground
        """The recording whose states are walked now."""
        self._engines = engines_of(
            trial,
            order.engine,
            lab,
            folder=folder,
            recording=lambda: self.ground.recording,
            first=lambda: self.ground.latest,
        )
        self._times = Times()
        self.judge = StateJudge(trial, cut, contents, ground=ground, times=self._times)
        self._recoveries = Recoveries(
            self._engines,
            judge=self.judge.judge,
            is_known=self.judge.is_known,
            hung=self.judge.hung,
            times=self._times,
        )
        self._seen: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self.first_ends: dict[str, FirstEnd] = {}
        """Of each content the first state of the load's recording that had it."""
        self._ends: Counter[tuple[str, int, tuple[str, ...]]] = Counter()
        self._unknown: Counter[str] = Counter()
        engine = order.engine if self._engines.has_scout else WalkEngine.KERNEL
        self.document = WalkDocument(engine=engine, depth=1)
        self._shrunk: list[StateVerdict] = []
        """The first loss of each kind, which the smallest state of its kind stands for."""
        self.first_loss: LostState | None = None
        self._intact: set[int] = set()
        self._by_library: list[_ByLibrary] = []
        """Of the states recovered last."""
        self._shares: dict[str, tuple[int, int]] = {}
        """Of the load's states, those drawn for each check of the library, and all of them."""
        self._until_s = 0.0

    def recover_all(
        self, ground: Ground, states: Sequence[DistinctState], *, until_s: float
    ) -> None:
        """Recover and judge the states, until the time is up. Then check the library's word."""
        self.ground = self.judge.ground = ground
        self._intact, self._by_library = set(), []
        begun_s, earlier_ms = time.monotonic(), self.document.walked_ms
        share = _CHECKED_SHARE if self._engines.has_scout else 0.0
        self._until_s = until_s - share * (until_s - begun_s)
        for number, state in enumerate(states):
            if self._is_over():
                break
            if number % _SHOWN_EVERY == 0:
                self.show(f"walk {self._states.total()}")
            self._recover(state, again=number % _REPEATED_EVERY == 0)
            self._count(walked_ms=earlier_ms + round((time.monotonic() - begun_s) * 1000))
        if not self._by_library:
            return
        self._until_s = until_s
        try:
            self._check_proofs()
            self._check_library()
        finally:
            self._count(walked_ms=earlier_ms + round((time.monotonic() - begun_s) * 1000))

    def _recover(self, state: DistinctState, *, again: bool) -> None:
        """Recover a state, and count it by the worst of its recoveries."""
        own = self._crash_state(state)
        is_nested = self.ground.acknowledged is not None
        found = self._recoveries.of(own, again=again)
        first, judged = found[0], worst_of(found)
        if judged.verdict is Verdict.INTACT:
            self._intact.add(state.key)
            if not any(recovery.by_kernel for recovery in found):
                known = _ByLibrary(state=state, crash_state=own, recovery=first)
                self._by_library.append(known)
        self._states["proven" if first.is_proven and len(found) == 1 else "recovered"] += 1
        self._states["amid_recovery"] += is_nested
        self._seen.update(filter(None, [first.content]))
        if first.end is not None and first.content and not is_nested:
            end = FirstEnd(state=own, verdict=first.verdict, health=first.end.health)
            self.first_ends.setdefault(first.content, end)
        self._tally(judged)
        if judged.loses:
            self._keep_loss(
                state, judged, lambda part: worst_of(self._recoveries.of(self._crash_state(part)))
            )

    def _check_proofs(self) -> None:
        """Recover proven states all the same, which the seed draws."""
        proofs = [known for known in self._by_library if known.recovery.is_proven]
        for known in self._drawn(proofs, "proofs"):
            if self._is_over():
                return
            shown = self._recoveries.proof_checked(known.recovery, known.crash_state)
            self._states.update({"proven": -1, "recovered": 1})
            self._hold_against(known, shown)

    def _check_library(self) -> None:
        """Let the kernel's ZFS recover states that the library alone calls intact, drawn by the seed."""
        number_known = self.document.by_library + len(self._by_library)
        self.document = replace(self.document, by_library=number_known)
        drawn = self._drawn(self._by_library, "library")
        both = self._order.engine is WalkEngine.BOTH
        fresh = list(self.first_ends.values())[: self._order.fresh] if both else []
        beside = [
            known
            for known in self._by_library
            if known not in drawn and any(known.crash_state == end.state for end in fresh)
        ]
        self.show("check the library")
        for number, known in enumerate((*drawn, *beside)):
            if self._is_over():
                return
            shown = self._recoveries.compared(known.recovery, known.crash_state)
            if number < len(drawn):
                self.document = replace(
                    self.document,
                    checked=self.document.checked + 1,
                    checked_differing=self.document.checked_differing
                    + (not known.recovery.ends_as(shown)),
                )
            self._hold_against(known, shown)

    def _drawn(self, known: Sequence[_ByLibrary], check: str) -> list[_ByLibrary]:
        """The states for a check, in random order: those before the end of the time are random, too.

        The first recording has `CHECKED_MIN` of them, and each later one the same share.
        """
        if check not in self._shares:
            is_both = self._order.engine is WalkEngine.BOTH and check == "library"
            more = -(-len(known) // _CHECKED_BY_BOTH) if is_both else 0
            self._shares[check] = max(CHECKED_MIN, more), max(len(known), 1)
        part, of = self._shares[check]
        wanted = min(-(-part * len(known) // of), len(known))
        return random.Random(f"walk/{self._trial.spec.seed}/{check}").sample(known, wanted)

    def _hold_against(self, known: _ByLibrary, shown: Recovery) -> None:
        """Count a state that was intact by the verdict of a further recovery, where that is worse."""
        judged = shown.verdict
        if judged.verdict is Verdict.INTACT:
            return
        self._by_library.remove(known)
        self._tally(known.recovery.verdict, by=-1)
        self._tally(judged)
        self._intact.discard(known.state.key)
        if judged.loses:
            self._keep_loss(
                known.state,
                judged,
                lambda part: self._recoveries.by_kernel(self._crash_state(part)).verdict,
            )

    def _tally(self, judged: StateVerdict, *, by: int = 1) -> None:
        self._outcomes[judged.verdict] += by
        self._ends[judged.verdict, judged.lost, judged.reasons] += by
        if judged.verdict is Verdict.INCONCLUSIVE:
            self._unknown.update(judged.reasons[:1])

    def _crash_state(self, state: DistinctState) -> CrashState:
        return state.crash_state(self.ground.recording, self._names)

    def _is_over(self) -> bool:
        return time.monotonic() > self._until_s

    def next_root(self, states: Sequence[DistinctState]) -> DistinctState | None:
        """The state whose recovery is to be cut: of those recovered last, one that lost nothing."""
        return next((state for state in states if state.key in self._intact), None)

    def _count(self, *, walked_ms: int) -> None:
        counted = self._recoveries.document
        # only a NAS that recovers all states of the load may drift
        if self.ground.acknowledged is None and not self._engines.has_scout:
            available_mib = self._engines.nas_available_mib
            self.document = self._times.with_drift(self.document, available_mib=available_mib)
        self.document = replace(
            self._times.with_sums(self.document),
            recovered=self._states["recovered"],
            proven=self._states["proven"],
            amid_recovery=self._states["amid_recovery"],
            repeated=counted.repeated,
            differing=counted.differing,
            proofs_repeated=counted.proofs_repeated,
            proofs_differing=counted.proofs_differing,
            compared=counted.compared,
            disagreeing=counted.disagreeing,
            given_up=counted.given_up,
            contents=self._contents.known,
            seen_once=_number_of_ones(self._seen),
            ends=len(+self._ends),
            ends_seen_once=_number_of_ones(self._ends),
            outcomes=dict(+self._outcomes),
            unknown=dict(self._unknown),
            walked_ms=walked_ms,
        )

    def count_fresh(self, state: CrashState, *, loses: bool, differs: bool) -> None:
        """Count a recovery by a fresh NAS; a loss that the engine did not find is the trial's."""
        if loses:
            self._require_legal(state)
        self.document = replace(
            self.document,
            fresh=self.document.fresh + 1,
            fresh_differing=self.document.fresh_differing + differs,
        )
        if loses and self.first_loss is None:
            self.first_loss = LostState(state=state, cut=self.judge.cut_of(state))

    def close(self) -> None:
        """End the engines, and let go of the client; the next recovery starts others."""
        self._contents.give_client_back()
        self._engines.close()

    def _keep_loss(
        self,
        state: DistinctState,
        judged: StateVerdict,
        judge: Callable[[DistinctState], StateVerdict],
    ) -> None:
        """Keep a loss; `judge` recovers smaller ones, with the engine that shows it."""
        self._require_legal(self._crash_state(state))
        is_new = len(self._shrunk) < _KINDS_SHRUNK_MAX and not any(
            judged.is_kind_of(known) for known in self._shrunk
        )
        if len(self.document.losses) >= _LOSSES_KEPT and not is_new:
            return
        dropped = None
        if is_new:
            self._shrunk.append(judged)
            self.show(f"shrink loss {len(self._shrunk)}")
            shrunk = smallest(state, judged, judge, is_over=self._is_over)
            if shrunk is not None:  # else it came by chance: the state is kept as found
                state, judged = shrunk
                dropped = dropped_writes(state, self.ground.recording)
        crash_state = self._crash_state(state)
        self._require_legal(crash_state)
        cut = self.judge.cut_of(crash_state)
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

    def _require_legal(self, state: CrashState) -> None:
        """Raise `HarnessError` for a loss in a state that no cut leaves: it is no loss."""
        require_legal(self.ground.recording, state, self._trial.disks_left)


def _number_of_ones(counts: Mapping[Any, int]) -> int:
    return sum(1 for count in counts.values() if count == 1)
