"""A walk over the crash states of a recording, and over those of recoveries that are cut, too."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from torture.choices.matrix.cells import ADMINISTRATION, FATE, IMAGE, ROOT, WORKLOAD, Cell
from torture.choices.workloads import with_those_beside
from torture.errors import HarnessError
from torture.facts.axes.fate import Fate
from torture.facts.axes.hypervisor import Image
from torture.facts.axes.root import Root
from torture.facts.evidence.ledger import parse_ledger
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import Kind, Recording, load_recording
from torture.features.walk.client_view import ContentChecks
from torture.features.walk.documents import SetsTaken, WalkDocument
from torture.features.walk.recoveries import FreshRecovery, recover_afresh
from torture.features.walk.states.course import RULE
from torture.features.walk.states.states import (
    DistinctState,
    distinct_states,
    drawn,
    in_batches,
    sets_taken,
    states_with_torn_labels,
)
from torture.features.walk.tasks import FRESH_S, Walk
from torture.features.walk.walk_values import Around, LostState, StateVerdict, WalkedRecording
from torture.features.walk.walker import Walker
from torture.machines.lab.machine import GuestDied
from torture.machines.nas.pool import pool_disks
from torture.trials.trial.administer import issued_seq_in
from torture.trials.trial.shared.machines import Machines, PowerCut, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, StorageFailed

_DEEPEST = 4
"""The most cuts in a row: one of the load, and three amid recoveries."""
_NESTED_SHARE = 0.1
"""Of all states, those of each cut amid a recovery."""
_LABELS_PART = 3
"""On top of all states, a third as many with a torn label, where the pool's disks change. They are no
part of the others: so an old seed draws the same states as before."""


def why_not_walked(cell: Cell) -> str:
    """Why the states of this cell are not walked; empty where they are."""
    if cell[FATE] is not Fate.BOTH_DIE:
        return "its client lives on, and would have to be walked, too"
    if any(disk.persistence is Persistence.LYING for disk in pool_disks(cell)):
        return "a disk lies about its flushes"
    administration = cell[ADMINISTRATION]
    is_plain = administration is None or administration.is_walked
    if not is_plain or cell[ROOT] is not Root.IMAGE:
        return "a state needs more than an import and a read-back"
    if cell[IMAGE] is not Image.NONE:
        return "its disk is a hypervisor's image"
    if not all(load.keeps_ledger for load in with_those_beside(cell[WORKLOAD])):
        return "a load keeps its acknowledgements outside the ledger"
    return ""


def walk(
    trial: Trial,
    order: Walk,
    machines: Machines,
    evidence: EvidenceWriter,
    cut: PowerCut,
    *,
    around: Around | None = None,
) -> LostState | None:
    """Recover states that cuts from the first acknowledgement on can leave; keep `walk.json`.

    The seed draws them, or they are those of the cuts nearest to that of `around`. Returns the first
    state that lost something, for a fresh NAS to recover; None without one. A failure of the machinery
    ends the walk early, and the document says so.
    """
    folder = trial.scratch / "walk"
    walked, states = walked_and_states(trial, cut, around)
    wanted, until_s = order.states, time.monotonic() + order.longer_s
    fresh_s = order.fresh * FRESH_S
    nested = 0 if around is not None else int(wanted * _NESTED_SHARE)
    chosen = drawn(states, len(states), seed=f"walk/{trial.spec.seed}")
    if around is not None:
        chosen.sort(key=lambda state: abs(state.cut - around.state.cut))
    chosen = chosen[: wanted - nested * (_DEEPEST - 1)]
    labels = () if around is not None else _with_torn_labels(trial, cut, states)
    chosen += drawn(labels, wanted // _LABELS_PART, seed=f"walk/{trial.spec.seed}/labels")
    with closing(ContentChecks(machines.lab, trial, folder / "contents")) as contents:
        walker = Walker(
            trial,
            order,
            machines.lab,
            cut,
            contents,
            walked=walked,
            folder=folder,
            show=evidence.enter_stage,
        )
        try:
            with closing(walker):
                nested_s = order.minutes * 60 * _NESTED_SHARE * (_DEEPEST - 1)
                walker.recover_all(walked, in_batches(chosen), until_s=until_s - nested_s - fresh_s)
                recover_contents_afresh(
                    trial, machines, walker, number=order.fresh, until_s=until_s - nested_s
                )
                root = walker.next_root(chosen)
                if nested and root is not None:
                    _walk_recoveries(trial, machines, walker, root, each=nested, until_s=until_s)
        except HarnessError as failure:  # the states before it were recovered, and a loss stands
            broken_off = failure.message.splitlines()[0]
            walker.document = replace(walker.document, broken_off=broken_off)
            if isinstance(failure, StorageFailed):
                raise
            machines.lab.forget_ended()
        finally:
            counted = replace(
                walker.document,
                rule=RULE,
                distinct=len(states) + len(labels),
                sets=_sets_taken(trial, cut) if around is None else SetsTaken(),
            )
            evidence.write(WalkDocument.FILE, counted.as_json())
    return walker.losses.first


def walked_and_states(
    trial: Trial, cut: PowerCut, around: Around | None
) -> tuple[WalkedRecording, tuple[DistinctState, ...]]:
    """The load's recording, or that of a recovery that was cut.

    The load's is walked from the first acknowledgement on, and from the command of an administration
    on.
    """
    if around is not None and around.state.recording != cut.recording.folder.resolve():
        recording = load_recording(around.state.recording)
        states = _states(trial, recording, first=0, last=len(recording.events) - 1)
        return _walked(trial, recording, states, acknowledged=around.acknowledged), states
    states = _states(trial, cut.recording, first=_first_event(trial, cut), last=cut.seq)
    return _walked(trial, cut.recording, states), states


def _with_torn_labels(
    trial: Trial, cut: PowerCut, states: Sequence[DistinctState]
) -> list[DistinctState]:
    """Further states of the load's recording: with a torn label alone."""
    known = {state.key for state in states}
    disks = {disk.serial: disk.persistence for disk in trial.disks_left}
    first = _first_event(trial, cut)
    found = states_with_torn_labels(cut.recording, disks, first=first, last=cut.seq)
    return [state for state in found if state.key not in known]


def _sets_taken(trial: Trial, cut: PowerCut) -> SetsTaken:
    disks = {disk.serial: disk.persistence for disk in trial.disks_left}
    first, seed = _first_event(trial, cut), trial.spec.seed
    return sets_taken(cut.recording, disks, first=first, last=cut.seq, seed=seed)


def _first_event(trial: Trial, cut: PowerCut) -> int:
    return max(_first_acknowledgement(cut), issued_seq_in(trial.folder))


def _walked(
    trial: Trial,
    recording: Recording,
    states: Sequence[DistinctState],
    *,
    acknowledged: int | None = None,
) -> WalkedRecording:
    latest = max(states, key=lambda state: (state.cut, -len(state.dropped)))
    names = [disk.serial for disk in trial.disks_left]
    return WalkedRecording(
        recording=recording, latest=latest.crash_state(recording, names), acknowledged=acknowledged
    )


def _walk_recoveries(
    trial: Trial,
    machines: Machines,
    walker: Walker,
    root: DistinctState,
    *,
    each: int,
    until_s: float,
) -> None:
    """Cut the recovery from this state, then the recovery from a state of that cut, and so on.

    It ends early where such a recovery itself loses something.
    """
    names = [disk.serial for disk in trial.disks_left]
    walked = walker.walked
    state: DistinctState | None = root
    for depth in range(2, _DEEPEST + 1):
        if state is None or time.monotonic() > until_s:
            return
        crash_state = state.crash_state(walked.recording, names)
        walker.close()  # libvirt has one NAS of a name
        recording = _recovery_of(trial, machines, walker, crash_state, depth=depth)
        if recording is None:
            return
        states = _states(trial, recording, first=0, last=len(recording.events) - 1)
        walked = _walked(trial, recording, states, acknowledged=root.cut)
        chosen = drawn(states, each, seed=f"walk/{trial.spec.seed}/{depth}")
        walker.recover_all(walked, in_batches(chosen), until_s=until_s)
        walker.document = replace(walker.document, depth=depth)
        state = walker.next_root(chosen)


def recover_contents_afresh(
    trial: Trial, machines: Machines, walker: Walker, *, number: int, until_s: float
) -> None:
    """Let a fresh NAS recover a state of each of the first contents: its verdict must be the same."""
    walker.close()
    folder = machines.shelf.directory / "recovery-again"
    for end in list(walker.first_ends.values())[:number]:
        if time.monotonic() > until_s:
            return
        fresh, shown = _recovered_afresh(trial, machines, walker, end.state, folder)
        loses = shown is None or shown.loses
        is_as_healthy = fresh is not None and fresh.health == end.health
        differs = shown != end.verdict or not is_as_healthy
        walker.count_fresh(end.state, loses=loses, differs=differs)
        if loses and not end.verdict.loses:
            return  # the recording of that recovery is evidence
        shutil.rmtree(folder)


def _recovery_of(
    trial: Trial, machines: Machines, walker: Walker, state: CrashState, *, depth: int
) -> Recording | None:
    """The recording of a whole recovery from a state; None where that recovery lost something."""
    folder = machines.shelf.directory / f"recovery-{depth}"
    fresh, shown = _recovered_afresh(trial, machines, walker, state, folder)
    loses = shown is None or shown.loses
    walker.count_fresh(state, loses=loses, differs=loses)
    return None if loses or fresh is None else fresh.recording


def _recovered_afresh(
    trial: Trial, machines: Machines, walker: Walker, state: CrashState, folder: Path
) -> tuple[FreshRecovery | None, StateVerdict | None]:
    """A fresh recovery and its verdict; None for both where it did not end."""
    walker.show(f"recover afresh {walker.document.fresh + 1}")
    try:
        fresh = recover_afresh(trial, machines.lab, state, folder)
    except (StorageFailed, GuestDied) as failure:
        if isinstance(failure, GuestDied) and not failure.kernel_crashed:
            raise
        return None, None
    shown = walker.judge.verdict_of(
        fresh.evidence, state, is_imported=fresh.is_imported, health=fresh.health
    )
    return fresh, shown


def _states(
    trial: Trial, recording: Recording, *, first: int, last: int
) -> tuple[DistinctState, ...]:
    disks = {disk.serial: disk.persistence for disk in trial.disks_left}
    return distinct_states(recording, disks, first=first, last=last, seed=trial.spec.seed)


def _first_acknowledgement(cut: PowerCut) -> int:
    """The event by which the first operation was acknowledged; the cut where none was."""
    lines: list[bytes] = []
    for event in cut.recording.events[: cut.seq]:
        if event.kind is Kind.MARK:
            lines.append(cut.recording.payload(event))
            if parse_ledger(b"".join(lines)).acknowledged:
                return event.seq
    return cut.seq
