"""The cut itself: freeze the shelf, then SIGKILL; nothing graceful anywhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torture.choices.matrix.axes import ADMINISTRATION, FATE
from torture.choices.matrix.durability import (
    completed_sync_of,
    flushed_data_sync_of,
    names_are_volatile_in,
)
from torture.choices.matrix.waived import waived_in
from torture.errors import HarnessError
from torture.facts.axes.fate import Fate
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    CUT,
    CUT_STATE,
    LEDGER,
    SECOND_CUT_STATE,
    load_evidence,
    write_document,
)
from torture.facts.evidence.ledger import heard_in, parse_ledger
from torture.facts.recording.accounting import account
from torture.facts.recording.crash_state import CrashState, write_crash_state
from torture.facts.recording.events import Recording, load_recording, marks_until
from torture.facts.recording.log_chains import chains_in
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import shows_metadata_by_length, whole_on
from torture.machines.shelf.control import FreezeOn
from torture.oracles.audit.audit import audit
from torture.oracles.audit.found import Audit
from torture.oracles.audit.marks_only import marks_only
from torture.trials.plan.cut_plan import TARGETS, Aim, Target
from torture.trials.plan.second_cut import SecondCut
from torture.trials.trial.administered.issue import issued_seq_in
from torture.trials.trial.confirm import confirm
from torture.trials.trial.context import TrialContext
from torture.trials.trial.promises.of_disk import completions_before

_BEGIN_DEADLINE_S = 10
_EVENT_DEADLINE_S = 8.0
"""A transaction group begins to be written 5 s after the last one (`zfs_txg_timeout`, zfs(4))."""
_EVENT_POLL_S = 0.01
_WARM_UP_DEADLINE_S = 30
_LOAD_POLL_S = 1.0
_HEARD_DEADLINE_S = 10


def victims(context: TrialContext, *, nas: Machine, client: Machine) -> tuple[Machine, ...]:
    """The machines whose power is cut."""
    return (nas, client) if context.spec.cell[FATE] is Fate.BOTH_DIE else (nas,)


def wait_for_moment(context: TrialContext, nas: Machine) -> bool:
    """Return at the planned moment; the load began when its first acknowledgement was heard.

    True when what the plan aims at came; the shelf has frozen itself then, if that was an event of
    a disk. Where it does not come in time the cut strikes all the same.
    """
    plan, loads = context.plan.cut, context.loads
    end = time.monotonic() + plan.after_ms / 1000
    while (left_s := end - time.monotonic()) > 0:
        time.sleep(min(left_s, _LOAD_POLL_S))
        context.shelf.require_room()
        loads.raise_if_over()
    match plan.aim:
        case Aim.ANYWHERE:
            return True
        case Aim.OPERATION:
            begun = loads.begun
            if not loads.wait_until(lambda: loads.begun > begun, deadline_s=_BEGIN_DEADLINE_S):
                raise HarnessError(f"the load began nothing for {_BEGIN_DEADLINE_S} s")
            time.sleep(plan.delay_ms / 1000)
            return True
        case Aim.ACKNOWLEDGED:
            heard = loads.acknowledged
            if not loads.wait_until(
                lambda: loads.acknowledged > heard, deadline_s=_BEGIN_DEADLINE_S
            ):
                return False  # a load that stalled: the cut is empty, and says so
            time.sleep(plan.delay_ms / 1000)
            return True
        case aim:
            return _wait_for_event(context, nas, TARGETS[aim])


def _wait_for_event(context: TrialContext, nas: Machine, target: Target) -> bool:
    if target.warm_up:
        nas.run(*target.warm_up, deadline_s=_WARM_UP_DEADLINE_S)
    if target.stir:
        # before the shelf may freeze: a NAS that stands still gives the agent no answer
        nas.agent.start(target.stir)
    shelf = context.shelf
    shelf.freeze_on(
        FreezeOn(
            event=target.event,
            role=target.role,
            count=context.plan.cut.count,
            zil_uncovered=target.zil_uncovered,
            is_zil_reused=target.is_zil_reused,
        )
    )
    end = time.monotonic() + _EVENT_DEADLINE_S
    while time.monotonic() < end:
        if shelf.is_frozen:
            return True
        time.sleep(_EVENT_POLL_S)
    return False


def cut_power(context: TrialContext, *, hit: bool, victims: Sequence[Machine]) -> Path:
    """Cut the power of `victims`, which stand still since the shelf froze: now, if it has not itself.

    Writes `cut.json`, and the crash state to recover, whose file is returned: what this cut left, or, if
    the audit found something, what an earlier one would have.
    """
    blow = _strike(context, victims)
    recording, cut = blow.recording, blow.seq
    state = CrashState(
        recording=context.shelf.recording,
        cut=cut,
        seed=context.spec.seed,
        disks=dict(context.plan.survivors),
    )
    marks, acknowledged = _acknowledged_before(context, recording, cut)
    found, audit_ms = _audited(
        context, recording, cut, acknowledged=acknowledged, issued_seq=issued_seq_in(context)
    )
    recovered, confirmed = confirm(context, recording, found, drawn=state, t_ms=blow.t_ms)
    state_file = context.shelf.directory / CUT_STATE
    write_crash_state(state_file, recovered)
    document = CutDocument(
        t_ms=round(blow.t_ms, 3),
        took_ms=round(blow.took_ms, 3),
        plan=context.plan.cut.as_json(),
        hit=hit,
        log_seq=cut,
        log_ms=round(recording.events[cut].time_ns / 1e6, 3),
        marks=marks,
        acknowledged=acknowledged,
        view=state.as_json() | {"recording": context.shelf.recording.name},
        phase=found.phase or "",
        audit=found.as_document(took_ms=audit_ms),
        confirmed=confirmed,
        disks=account(recording, state, context.disks),
    )
    write_document(context.folder, CUT, document.as_json())
    return state_file


def note_return(context: TrialContext) -> None:
    """Add to `cut.json` when the NAS that came back published its volume again."""
    if context.published is None:
        return
    publishing_ms, published_ms = (round(ms, 3) for ms in context.published)
    cut = load_evidence(context.folder).cut
    cut = replace(cut, publishing_ms=publishing_ms, published_ms=published_ms)
    write_document(context.folder, CUT, cut.as_json())


def cut_power_again(
    context: TrialContext, second: SecondCut, *, victims: Sequence[Machine]
) -> Path:
    """Cut the power of NAS and client after it lived on; adds to `cut.json`, returns the crash state."""
    context.shelf.halt_with_freeze(*victims)
    before = load_evidence(context.folder).cut
    blow = _strike(context, victims)
    recording = blow.recording
    _must_be_another_boot(context, recording, before)
    state = CrashState(
        recording=context.shelf.recording,
        cut=blow.seq,
        seed=second.seed,
        disks=dict(second.survivors),
    )
    state_file = context.shelf.directory / SECOND_CUT_STATE
    write_crash_state(state_file, state)
    found, audit_ms = _audited(context, recording, blow.seq, is_second=True)
    disks = account(recording, state, context.disks_left)
    again = CutDocument(
        t_ms=round(blow.t_ms, 3),
        took_ms=round(blow.took_ms, 3),
        log_seq=blow.seq,
        log_ms=round(recording.events[blow.seq].time_ns / 1e6, 3),
        view=state.as_json() | {"recording": context.shelf.recording.name},
        phase=found.phase or "",
        audit=found.as_document(took_ms=audit_ms),
        disks=disks,
    )
    write_document(context.folder, CUT, replace(before, second=again).as_json())
    return state_file


def _must_be_another_boot(context: TrialContext, recording: Recording, before: CutDocument) -> None:
    """Raise `HarnessError` if the NAS began a chain of its intent log that the one before had, too.

    It would then take that one's blocks for its own where they happen to lie: a loss of our making. The
    chains of a client's own ZFS go on, and cannot be told from the NAS's.
    """
    if context.filesystem.looks_like_zfs:
        return
    former = load_recording(context.shelf.recording.with_name(before.view["recording"]))
    if chains_in(recording) & chains_in(former):
        raise HarnessError(
            "the NAS that came back drew the same random numbers as the one before",
            hint="run the trial again: what a resumed NAS draws depends on when it is asked",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Blow:
    """A cut as the host saw it; `seq` is the number of the last event that happened."""

    recording: Recording
    seq: int
    t_ms: float
    took_ms: float


def _strike(context: TrialContext, victims: Sequence[Machine]) -> _Blow:
    """Freeze the shelf, if it has not itself, and end everything."""
    t_ms = context.clock_ms()
    cut = context.shelf.freeze()
    if context.ledger is not None:
        context.ledger.mark_cut(t_ms)
    # asked before its clients are gone: nbdkit before 1.34 may abort when they go with answers under way
    context.shelf.require_healthy()
    for machine in victims:
        machine.kill()
    dead_ms = context.clock_ms()
    context.shelf.stop()
    recording = load_recording(context.shelf.recording)
    if len(recording.events) <= cut:
        raise HarnessError(
            f"the shelf froze at event {cut}, its log has {len(recording.events)}",
            hint=f"read {context.shelf.errors}",
        )
    return _Blow(recording=recording, seq=cut, t_ms=t_ms, took_ms=dead_ms - t_ms)


def _audited(
    context: TrialContext,
    recording: Recording,
    cut: int,
    *,
    acknowledged: int = 0,
    issued_seq: int = 0,
    is_second: bool = False,
) -> tuple[Audit, int]:
    """What the audit found, and its milliseconds of a processor; `is_second`: of the second cut.

    `issued_seq`: the event before an administration's command, which goes on after a reboot.

    `acknowledged`: how many operations on the disk have ended, if that is known.
    """
    begun_s = time.thread_time()
    found = audit(
        recording,
        cut=cut,
        sync=flushed_data_sync_of(context.spec.cell),
        completed_sync=completed_sync_of(context.spec.cell),
        completions=completions_before(
            context, recording, cut=cut, acknowledged=acknowledged, is_second=is_second
        ),
        waived=waived_in(context.spec.cell, issued_seq=issued_seq),
        whole_on=whole_on(context.spec.cell),
        writes_once=context.filesystem.writes_once,
        names_are_volatile=names_are_volatile_in(context.spec.cell),
        length_shows_metadata=shows_metadata_by_length(context.spec.cell),
        only_groups_write=context.spec.cell[ADMINISTRATION] is None,
    )
    if context.filesystem.looks_like_zfs:
        found = marks_only(found)
    return found, round((time.thread_time() - begun_s) * 1000)


def _acknowledged_before(context: TrialContext, recording: Recording, cut: int) -> tuple[int, int]:
    """Marks, and acknowledged operations in them, when the disks stopped, by the numbers of their log.

    Raises `HarnessError` when the marks are not the ledger's first lines: then nobody can tell.
    """
    marks = marks_until(recording, cut=cut)
    if (ledger := context.ledger) is not None:
        ledger.wait_until(lambda: ledger.heard >= len(marks), deadline_s=_HEARD_DEADLINE_S)
        heard = heard_in((context.folder / LEDGER).read_bytes())
        if heard[: len(marks)] != marks:
            raise HarnessError(
                "the marks in the shelf's log are not the first lines of the ledger",
                hint=f"compare {context.folder / LEDGER} with {context.shelf.recording}",
            )
    before = parse_ledger(b"".join(marks))
    return len(marks), before.acknowledged
