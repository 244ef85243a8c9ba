"""A walk over the crash states of a recording: recover, look, judge, count."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from torture.choices.matrix.axes import ADMINISTRATION, FATE, ROOT, TRANSPORT, WORKLOAD
from torture.choices.matrix.cells import Cell
from torture.choices.volumes import VolumeKind
from torture.choices.workloads import with_those_beside
from torture.facts.axes.fate import Fate
from torture.facts.axes.root import Root
from torture.facts.evidence.cut_document import Confirmation
from torture.facts.evidence.folder import LEDGER, Evidence, load_evidence
from torture.facts.evidence.ledger import parse_ledger
from torture.facts.evidence.requests import BLOCK_REQUESTS
from torture.facts.evidence.walk_document import (
    WALK,
    DroppedWrite,
    WalkDocument,
    WalkedLoss,
    WalkEngine,
)
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.roles import role_of
from torture.facts.recording.states import DistinctState, distinct_states
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import GuestDied
from torture.machines.lab.recovery_program import recovery_program
from torture.machines.nas.pool import gone_at_cut, pool_disks
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.walked import StateVerdict, judge_state
from torture.trials.trial.confirm import earlier_cut
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import PowerCut
from torture.trials.trial.shared.storage import StorageFailed
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.content_checks import ContentChecks
from torture.trials.trial.walk.engine import GaveUp, Recovered
from torture.trials.trial.walk.engines import Engines
from torture.trials.trial.walk.kernel_engine import KernelEngine
from torture.trials.trial.walk.native_engine import NativeEngine
from torture.trials.trial.walk.ranges import grains_of
from torture.trials.trial.walk.shrink import Dropped, fewest

_LOSSES_KEPT = 20
_SHRINKING_STATES_MAX = 100
_REPEATED_EVERY = 50
"""One state in so many is recovered twice, and by both engines where that is asked for."""
_COMPARED_FIRST = 4
"""So many first states are recovered by both engines: a mistake of all states shows at once."""
_BUDGET_S = 1200
"""The rest of a trial, and its deadline, must have room beside it."""


def why_not_walked(cell: Cell) -> str:
    """Why the states of this cell are not walked; empty where they are."""
    if cell[TRANSPORT].traits.volume is not VolumeKind.ZVOL:
        return "the volume is no zvol"
    if cell[FATE] is not Fate.BOTH_DIE:
        return "its client lives on, and would have to be walked, too"
    if any(disk.persistence is Persistence.LYING for disk in pool_disks(cell)):
        return "a disk lies about its flushes"
    if gone_at_cut(cell, 0):
        return "a disk is gone after the cut"
    if cell[ADMINISTRATION] is not None or cell[ROOT] is not Root.IMAGE:
        return "a state needs more than an import and a read-back"
    if not all(load.keeps_ledger for load in with_those_beside(cell[WORKLOAD])):
        return "a load keeps its acknowledgements outside the ledger"
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LostState:
    """A state that lost something, and its cut."""

    state: CrashState
    cut: Confirmation


def walk(trial: Trial, lab: Lab, evidence: EvidenceWriter, cut: PowerCut) -> LostState | None:
    """Recover states that cuts from the first acknowledgement on can leave; keep `walk.json`.

    Returns the first state that lost something, for a fresh NAS to recover; None without one.
    """
    recording = cut.recording
    disks = {disk.serial: disk.persistence for disk in trial.disks_left}
    first = _first_acknowledgement(recording, cut=cut.seq)
    states = distinct_states(recording, disks, first=first, last=cut.seq, seed=trial.spec.seed)
    chosen = list(states)
    random.Random(f"walk/{trial.spec.seed}").shuffle(chosen)
    chosen = chosen[: trial.spec.walk_states]
    folder = trial.scratch / "walk"
    with closing(ContentChecks(lab, trial, folder / "contents")) as contents:
        walked = _Walk(trial, lab, cut, chosen, contents, folder=folder)
        with closing(walked):
            walked.recover_all()
    evidence.write(WALK, replace(walked.document, distinct=len(states)).as_json())
    return walked.first_loss


def _first_acknowledgement(recording: Recording, *, cut: int) -> int:
    """The event by which the first operation was acknowledged; `cut` where none was."""
    lines: list[bytes] = []
    for event in recording.events[:cut]:
        if event.kind is Kind.MARK:
            lines.append(recording.payload(event))
            if parse_ledger(b"".join(lines)).acknowledged:
                return event.seq
    return cut


class _Walk:
    """The engine, the states so far, and their outcomes."""

    def __init__(
        self,
        trial: Trial,
        lab: Lab,
        cut: PowerCut,
        states: Sequence[DistinctState],
        contents: ContentChecks,
        *,
        folder: Path,
    ) -> None:
        self._trial = trial
        self._lab = lab
        self._cut = cut
        self._recording = recording = cut.recording
        self._live = load_evidence(trial.folder)
        self._ledger = (trial.folder / LEDGER).read_bytes()
        self._states = states
        self._contents = contents
        self._folder = folder
        self._names = [disk.serial for disk in trial.disks_left]
        self._engines = self._chosen_engines(lab)
        self._judged: dict[tuple[str, int], StateVerdict] = {}
        self._marks = [event.seq for event in recording.events if event.kind is Kind.MARK]
        self.document = WalkDocument(engine=trial.spec.walk_engine)
        self.first_loss: LostState | None = None

    def recover_all(self) -> None:
        """Recover and judge the states, until the time is up."""
        begun_s = time.monotonic()
        outcomes: Counter[str] = Counter()
        unknown: Counter[str] = Counter()
        for number, state in enumerate(self._states):
            if time.monotonic() - begun_s > _BUDGET_S:
                break
            judged = self._judge_state(state, number=number)
            outcomes[judged.verdict] += 1
            if judged.verdict is Verdict.INCONCLUSIVE:
                unknown.update(judged.reasons[:1])
            elif judged.loses:
                self._keep_loss(state, judged)
            counted = self._engines.document
            self.document = replace(
                self.document,
                recovered=number + 1,
                repeated=counted.repeated,
                differing=counted.differing,
                compared=counted.compared,
                disagreeing=counted.disagreeing,
                given_up=counted.given_up,
                contents=self._contents.known,
                outcomes=dict(outcomes),
                unknown=dict(unknown),
                walked_ms=round((time.monotonic() - begun_s) * 1000),
            )

    def close(self) -> None:
        """End the engines."""
        self._engines.close()

    def _chosen_engines(self, lab: Lab) -> Engines:
        disks, folder = self._trial.disks_left, self._folder
        first = min(self._states, key=lambda state: state.cut)
        first_state = first.crash_state(self._recording, self._names)

        def kernel() -> KernelEngine:
            return KernelEngine(lab, disks=disks, first=first_state, folder=folder / "engine")

        def native() -> NativeEngine:
            return NativeEngine(
                recovery_program(lab.zfs),
                self._recording,
                disks=disks,
                first=first_state,
                folder=folder / "native",
            )

        requests = self._trial.folder / BLOCK_REQUESTS
        return Engines(
            start_kernel=kernel,
            start_scout=None if self._trial.spec.walk_engine is WalkEngine.KERNEL else native,
            first=first_state,
            written=set(_written_grains(requests)) if requests.exists() else None,
            scratch=folder,
        )

    def _judge(
        self, state: DistinctState, crash_state: CrashState, recovered: Recovered
    ) -> StateVerdict:
        """The verdict by the content and the acknowledgements before the cut."""
        marks = sum(1 for seq in self._marks if seq <= state.cut)
        known = self._judged.get((recovered.content, marks))
        if known is None:
            known = self._judged[recovered.content, marks] = self._judged_anew(
                crash_state, recovered
            )
        return known

    def _judged_anew(self, state: CrashState, recovered: Recovered) -> StateVerdict:
        earlier = self._earlier(state)
        lived = replace(
            self._live,
            cut=replace(self._live.cut, confirmed=earlier),
            ledger=earlier.ledger_of(self._ledger),
        )
        if not recovered.is_imported or recovered.volume_errno:
            return judge_state(self._trial.cell, lived, is_imported=False)
        look = self._contents.seen(recovered.content) or self._inspect(recovered.content)
        seen = replace(lived, tools=look.tools, readbacks=look.readbacks)
        return judge_state(self._trial.cell, seen, is_imported=True)

    def _earlier(self, state: CrashState) -> Confirmation:
        return earlier_cut(
            self._recording,
            state,
            last=self._cut.seq,
            t_ms=self._cut.t_ms,
            finding="a walked state lost something",
        )

    def _inspect(self, content: str) -> Evidence:
        """A client's look at the state that was just recovered."""
        image = self._folder / f"{content}.raw"
        self._engines.copy_volume(image)
        try:
            return self._contents.inspect(content, image)
        finally:
            image.unlink(missing_ok=True)

    def _keep_loss(self, state: DistinctState, judged: StateVerdict) -> None:
        if len(self.document.losses) >= _LOSSES_KEPT:
            return
        dropped = None
        if self.first_loss is None:
            shrunk = self._shrunk(state)
            shown = self._judge_state(shrunk)
            if shown.loses:  # else the loss came by chance: the state is kept as it was found
                state, judged = shrunk, shown
                dropped = tuple(map(self._described, shrunk.dropped))
        crash_state = state.crash_state(self._recording, self._names)
        if self.first_loss is None:
            self.first_loss = LostState(state=crash_state, cut=self._earlier(crash_state))
        loss = WalkedLoss(
            verdict=judged.verdict,
            acknowledged=judged.acknowledged,
            lost=judged.lost,
            reasons=judged.reasons,
            view=crash_state.as_json() | {"recording": self._recording.folder.name},
            unflushed=len(state.survivors) + len(state.dropped),
            dropped=dropped,
        )
        self.document = replace(self.document, losses=(*self.document.losses, loss))

    def _shrunk(self, state: DistinctState) -> DistinctState:
        """The state with the fewest dropped writes that still loses something."""

        def loses(part: Dropped) -> bool:
            return self._judge_state(state.dropping_only(part)).loses

        return state.dropping_only(fewest(state.dropped, loses, asks_max=_SHRINKING_STATES_MAX))

    def _judge_state(self, state: DistinctState, *, number: int | None = None) -> StateVerdict:
        """The verdict; a state that hangs a machine, or crashes its kernel, is unavailable.

        `number`: its place among the states, where it is none of those for a smaller loss.
        """
        crash_state = state.crash_state(self._recording, self._names)
        again = number is not None and number % _REPEATED_EVERY == 0
        if self._engines.has_scout:
            compared = self._trial.spec.walk_engine is WalkEngine.BOTH and (
                again or (number is not None and number < _COMPARED_FIRST)
            )
            scouted = self._scouted(state, crash_state, again=again, compared=compared)
            if scouted is not None and not scouted.loses:
                return scouted
        try:
            recovered = self._engines.recover(crash_state, again=again)
            return self._judge(state, crash_state, recovered)
        except (StorageFailed, GuestDied) as failure:
            if isinstance(failure, GuestDied) and not failure.kernel_crashed:
                raise
            self._engines.end_kernel()
            return StateVerdict(
                verdict=Verdict.UNAVAILABLE,
                acknowledged=self._earlier(crash_state).acknowledged or 0,
                lost=0,
                reasons=(str(failure).splitlines()[0],),
            )

    def _scouted(
        self, state: DistinctState, crash_state: CrashState, *, again: bool, compared: bool
    ) -> StateVerdict | None:
        """The verdict by the scout's recovery; None where the kernel's ZFS has to recover the state."""
        try:
            recovered = self._engines.scout(crash_state, again=again, compared=compared)
            return self._judge(state, crash_state, recovered)
        except (GaveUp, StorageFailed):
            return None
        except GuestDied as failure:
            if not failure.kernel_crashed:
                raise
            return None

    def _described(self, submission: int) -> DroppedWrite:
        event = self._recording.events[submission]
        assert event.disk is not None
        is_write = event.kind is Kind.WRITE_SUBMIT
        return DroppedWrite(
            disk=self._recording.disks[event.disk].name,
            role=role_of(self._recording.payload(event)) if is_write else event.kind,
            offset_bytes=event.offset,
            length_bytes=event.length,
        )


def _written_grains(requests: Path) -> Iterator[int]:
    """The grains that the client's disk was asked to write."""
    for line in requests.read_bytes().splitlines():
        request = json.loads(line)
        yield from grains_of(request["offset_bytes"], request["length_bytes"])
