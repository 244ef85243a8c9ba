"""Recovers states one after the other, judges and counts them, and keeps the losses."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from torture.facts.recording.crash_state import CrashState
from torture.features.walk.client_view import ContentChecks
from torture.features.walk.documents import WalkDocument, WalkEngine
from torture.features.walk.engines.engines import engines_of
from torture.features.walk.judging import Losses, StateJudge
from torture.features.walk.recoveries import How, Recoveries, Recovery, worst_of
from torture.features.walk.states.states import DistinctState
from torture.features.walk.tasks import Walk
from torture.features.walk.walk_values import FirstEnd, StateVerdict, Times, WalkedRecording
from torture.machines.lab.lab import Lab
from torture.oracles.verdict.guarantee import Verdict
from torture.trials.trial.shared.machines import PowerCut, Trial

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
    recovery: Recovery


class Tally:
    """Counts states, and takes a count back where a further recovery is worse."""

    def __init__(self) -> None:
        self._states: Counter[str] = Counter()
        self._contents: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._ends: Counter[tuple[str, int, tuple[str, ...]]] = Counter()
        self._unknown: Counter[str] = Counter()

    @property
    def states(self) -> int:
        """The number of states so far."""
        return self._states["recovered"] + self._states["proven"]

    def add_state(self, first: Recovery, judged: StateVerdict, *, is_alone: bool) -> None:
        """Count a state by its first recovery, which may be the only one, and by its verdict."""
        is_proven = first.how is How.PROOF and is_alone
        self._states["proven" if is_proven else "recovered"] += 1
        self._contents.update(filter(None, [first.content]))
        self.add_verdict(judged)

    def add_verdict(self, judged: StateVerdict, *, by: int = 1) -> None:
        """Count a verdict, or with -1 take it back."""
        self._verdicts[judged.verdict] += by
        self._ends[judged.verdict, judged.lost, judged.reasons] += by
        if judged.verdict is Verdict.INCONCLUSIVE:
            self._unknown.update(judged.reasons[:1])

    def count_as_recovered(self) -> None:
        """Count a proven state as a recovered one: its proof is checked."""
        self._states.update({"proven": -1, "recovered": 1})

    def into(self, document: WalkDocument) -> WalkDocument:
        """The document with these counts."""
        return replace(
            document,
            recovered=self._states["recovered"],
            proven=self._states["proven"],
            seen_once=_number_of_ones(self._contents),
            ends=len(+self._ends),
            ends_seen_once=_number_of_ones(self._ends),
            outcomes=dict(+self._verdicts),
            unknown=dict(self._unknown),
        )


def _number_of_ones(counts: Mapping[Any, int]) -> int:
    return sum(1 for count in counts.values() if count == 1)


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
        walked: WalkedRecording,
        folder: Path,
        show: Callable[[str], None],
    ) -> None:
        self._trial = trial
        self._order = order
        self._contents = contents
        self.show = show
        """Says on the live line how far the walk is."""
        self._names = [disk.serial for disk in trial.disks_left]
        self.walked = walked
        """The recording whose states are walked now."""
        self._engines = engines_of(
            trial,
            order.engine,
            lab,
            folder=folder,
            recording=lambda: self.walked.recording,
            first=lambda: self.walked.latest,
        )
        self._times = Times()
        self.judge = StateJudge(trial, cut, contents, walked=walked, times=self._times)
        self._recoveries = Recoveries(
            self._engines,
            judge=self.judge.judge,
            is_known=self.judge.is_known,
            hung=self.judge.hung,
            times=self._times,
        )
        self._tally = Tally()
        self.losses = Losses(trial, self.judge, show)
        self.first_ends: dict[str, FirstEnd] = {}
        """Of each content the first state of the load's recording that had it."""
        engine = order.engine if self._engines.has_scout else WalkEngine.KERNEL
        self.document = WalkDocument(engine=engine, depth=1)
        self._intact: set[int] = set()
        self._by_library: list[_ByLibrary] = []
        """Of the states recovered last."""
        self._shares: dict[str, tuple[int, int]] = {}
        """Of the load's states, those drawn for each check of the library, and all of them."""
        self._until_s = 0.0

    def recover_all(
        self, walked: WalkedRecording, states: Sequence[DistinctState], *, until_s: float
    ) -> None:
        """Recover and judge the states, until the time is up. Then check the library's word."""
        self.walked = self.judge.walked = walked
        self._intact, self._by_library = set(), []
        begun_s, earlier_ms = time.monotonic(), self.document.walked_ms
        share = _CHECKED_SHARE if self._engines.has_scout else 0.0
        self._until_s = until_s - share * (until_s - begun_s)
        for number, state in enumerate(states):
            if self._is_over():
                break
            if number % _SHOWN_EVERY == 0:
                self.show(f"walk {self._tally.states}")
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
        is_nested = self.walked.acknowledged is not None
        found = self._recoveries.of(own, again=again)
        first, judged = found[0], worst_of(found)
        if judged.verdict is Verdict.INTACT:
            self._intact.add(state.key)
            if not any(recovery.how is How.KERNEL for recovery in found):
                self._by_library.append(_ByLibrary(state=state, recovery=first))
        self._tally.add_state(first, judged, is_alone=len(found) == 1)
        amid_recovery = self.document.amid_recovery + is_nested
        self.document = replace(self.document, amid_recovery=amid_recovery)
        if first.end is not None and first.content and not is_nested:
            end = FirstEnd(state=own, verdict=first.verdict, health=first.end.health)
            self.first_ends.setdefault(first.content, end)
        if judged.loses:
            self._keep_loss(
                state, judged, lambda part: worst_of(self._recoveries.of(self._crash_state(part)))
            )

    def _check_proofs(self) -> None:
        """Recover proven states all the same, which the seed draws."""
        proofs = [known for known in self._by_library if known.recovery.how is How.PROOF]
        for known in self._drawn(proofs, "proofs"):
            if self._is_over():
                return
            shown = self._recoveries.proof_checked(known.recovery)
            self._tally.count_as_recovered()
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
            if known not in drawn and any(known.recovery.state == end.state for end in fresh)
        ]
        self.show("check the library")
        for number, known in enumerate((*drawn, *beside)):
            if self._is_over():
                return
            shown = self._recoveries.compared(known.recovery)
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
        self._tally.add_verdict(known.recovery.verdict, by=-1)
        self._tally.add_verdict(judged)
        self._intact.discard(known.state.key)
        if judged.loses:
            self._keep_loss(
                known.state,
                judged,
                lambda part: self._recoveries.by_kernel(self._crash_state(part)).verdict,
            )

    def _crash_state(self, state: DistinctState) -> CrashState:
        return state.crash_state(self.walked.recording, self._names)

    def _is_over(self) -> bool:
        return time.monotonic() > self._until_s

    def next_root(self, states: Sequence[DistinctState]) -> DistinctState | None:
        """The state whose recovery is to be cut: of those recovered last, one that lost nothing."""
        return next((state for state in states if state.key in self._intact), None)

    def _count(self, *, walked_ms: int) -> None:
        counted = self._recoveries.document
        # only a NAS that recovers all states of the load may drift
        if self.walked.acknowledged is None and not self._engines.has_scout:
            available_mib = self._engines.nas_available_mib
            self.document = self._times.with_drift(self.document, available_mib=available_mib)
        self.document = replace(
            self._tally.into(self._times.with_sums(self.document)),
            repeated=counted.repeated,
            differing=counted.differing,
            proofs_repeated=counted.proofs_repeated,
            proofs_differing=counted.proofs_differing,
            compared=counted.compared,
            disagreeing=counted.disagreeing,
            given_up=counted.given_up,
            contents=self._contents.known,
            walked_ms=walked_ms,
        )

    def count_fresh(self, state: CrashState, *, loses: bool, differs: bool) -> None:
        """Count a recovery by a fresh NAS; a loss that the engine did not find is the trial's."""
        if loses:
            self.losses.keep_fresh(self.walked, state)
        self.document = replace(
            self.document,
            fresh=self.document.fresh + 1,
            fresh_differing=self.document.fresh_differing + differs,
        )

    def _keep_loss(
        self,
        state: DistinctState,
        judged: StateVerdict,
        judge: Callable[[DistinctState], StateVerdict],
    ) -> None:
        self.losses.keep(self.walked, state, judged, judge, is_over=self._is_over)
        self.document = replace(self.document, losses=self.losses.kept)

    def close(self) -> None:
        """End the engines, and let go of the client; the next recovery starts others."""
        self._contents.give_client_back()
        self._engines.close()
