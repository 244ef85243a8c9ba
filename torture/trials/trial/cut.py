"""The evidence of a cut: its audit, its document, and the crash state to recover.

The confirmation of a finding of the audit: a cut of the disks at the finding.

The NAS recovers from this cut instead of the drawn one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from torture.choices.matrix.cell_terms import (
    completed_sync_of,
    disks_keep_power,
    early_roles_in,
    flushed_data_sync_of,
    late_ms_of,
    names_are_volatile_in,
    waived_in,
)
from torture.choices.matrix.cells import ADMINISTRATION
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import Confirmation, CutDocument, LinkFailure
from torture.facts.evidence.folder import CUT, CUT_STATE, SECOND_CUT_STATE
from torture.facts.evidence.ledger import parse_ledger
from torture.facts.recording.crash_state import CrashState, require_legal, write_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Recording, load_recording, marks_until
from torture.facts.recording.intent_log import chains_in
from torture.facts.recording.model import account
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import shows_metadata_by_length, whole_on
from torture.machines.nas.settings import LAYOUT
from torture.oracles.audit.audit import AuditTerms, audit
from torture.oracles.audit.confirmable import confirmable
from torture.oracles.audit.invariants import Audit
from torture.records.tasks.core_tasks import Cut
from torture.trials.plan.trial_plan import SecondCut
from torture.trials.trial.administer import issued_seq_in
from torture.trials.trial.loads import Loads
from torture.trials.trial.promises.client_requests import completions_before, unlike_on_wire
from torture.trials.trial.promises.proof import not_in_effect
from torture.trials.trial.recovery import NasBack
from torture.trials.trial.shared.machines import Machines, PowerCut, Trial
from torture.trials.trial.shared.resident import EvidenceWriter


def confirm(
    recording: Recording,
    found: Audit,
    *,
    drawn: CrashState,
    t_ms: float,
    disks: tuple[ShelfDisk, ...],
    lives_on: bool,
    acknowledged: int,
    in_ledger: int | None,
    kept_because: str,
) -> tuple[CrashState, Confirmation]:
    """The crash state to recover, and its entry in `cut.json`.

    It is the drawn one, which was at `t_ms`, unless a finding of the audit can be confirmed. After a
    confirmation the client counts as dead: an acknowledged operation that is gone is lost either
    way, and later acknowledgements never happened.

    `acknowledged`: by all loads. `in_ledger`: in the ledger, if there is one. `kept_because`: why the
    drawn cut stays in any case. Raises `HarnessError` where no cut leaves the chosen state.
    """
    if not found.findings:
        return drawn, Confirmation()
    if kept_because:
        return drawn, Confirmation(why_not=kept_because)
    if acknowledged != in_ledger:
        why_not = "a load keeps its acknowledgements outside the ledger"
        return drawn, Confirmation(why_not=why_not)
    chosen = confirmable(found, recording, disks=disks, client_survives=lives_on)
    if isinstance(chosen, str):
        return drawn, Confirmation(why_not=chosen)
    state = CrashState(
        recording=drawn.recording, cut=chosen.event, seed=drawn.seed, disks=dict(chosen.disks)
    )
    require_legal(recording, state, disks)
    finding = chosen.finding.in_words()
    return state, earlier_cut(recording, state, last=drawn.cut, t_ms=t_ms, finding=finding)


def earlier_cut(
    recording: Recording,
    state: CrashState,
    *,
    last: int,
    t_ms: float,
    finding: str,
    at: int | None = None,
) -> Confirmation:
    """The record of a cut before that at event `last` and `t_ms`: the state recovered in its place.

    `at`: the event of that cut, where the state is that of a further cut amid the recovery.
    """
    place = state.recording.name
    if at is not None:
        place = os.path.relpath(state.recording, recording.folder.parent)
    cut = state.cut if at is None else at
    events, marks = recording.events, marks_until(recording, cut=cut)
    earlier_ms = (events[last].time_ns - events[cut].time_ns) / 1e6
    return Confirmation(
        finding=finding,
        event=cut,
        t_ms=round(t_ms - earlier_ms, 3),
        marks=len(marks),
        acknowledged=parse_ledger(b"".join(marks)).acknowledged,
        view=state.as_json() | {"recording": place},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptCut:
    """A cut as evidence."""

    document: CutDocument
    """The content of `cut.json` so far; each later stage writes it anew."""
    view: Path
    """The file of the crash state to recover."""


def keep_cut(
    trial: Trial,
    machines: Machines,
    evidence: EvidenceWriter,
    loads: Loads,
    cut: PowerCut,
    *,
    hit: bool,
    link: LinkFailure | None,
    not_in_effect: tuple[str, ...] = (),
) -> KeptCut:
    """Audit a cut; write `cut.json` and the crash state to recover.

    The state belongs to an earlier cut than this one where it confirms a finding of the audit. `hit`:
    whether the plan's target came. `link`: its failure before. `not_in_effect`: settings of the cell,
    under the load.
    """
    recording, ledger = cut.recording, machines.ledger
    state = CrashState(
        recording=recording.folder,
        cut=cut.seq,
        seed=trial.spec.seed,
        disks=dict(trial.plan.survivors),
    )
    marks = marks_until(recording, cut=cut.seq)
    if ledger is not None:
        ledger.must_begin_with(marks, log=recording.folder)
    acknowledged = parse_ledger(b"".join(marks)).acknowledged
    issued_seq = issued_seq_in(trial.folder)
    found, audit_ms = _audited(
        trial, machines, cut, acknowledged=acknowledged, issued_seq=issued_seq
    )
    recovered, confirmed = confirm(
        recording,
        found,
        drawn=state,
        t_ms=cut.t_ms,
        disks=trial.disks_left,
        lives_on=trial.client_lives_on,
        acknowledged=loads.acknowledged,
        in_ledger=None if ledger is None else ledger.acknowledged,
        kept_because=_why_drawn_stays(trial),
    )
    state_file = machines.shelf.directory / CUT_STATE
    write_crash_state(state_file, recovered)
    document = replace(
        _document(cut, state, found, audit_ms=audit_ms, disks=trial.disks),
        plan=trial.plan.cut.as_json(),
        hit=hit,
        link=link,
        not_in_effect=(
            *_unexplained(not_in_effect, found.layout_changes),
            *unlike_on_wire(trial),
        ),
        marks=len(marks),
        acknowledged=acknowledged,
        confirmed=confirmed,
    )
    return KeptCut(document=_written(evidence, document), view=state_file)


def _why_drawn_stays(trial: Trial) -> str:
    if disks_keep_power(trial.cell):
        return "the disks kept their power"
    task = trial.spec.task
    return "the run keeps each drawn cut" if isinstance(task, Cut) and task.keeps_drawn else ""


def keep_earlier_cut(
    evidence: EvidenceWriter, kept: KeptCut, earlier: Confirmation, state: CrashState
) -> KeptCut:
    """Recover this state instead: an earlier cut of the same disks."""
    write_crash_state(kept.view, state)
    document = replace(kept.document, confirmed=earlier)
    return KeptCut(document=_written(evidence, document), view=kept.view)


def keep_return(evidence: EvidenceWriter, cut: CutDocument, back: NasBack) -> CutDocument:
    """Add the times at which the returned NAS published its volume again."""
    document = replace(
        cut, publishing_ms=round(back.publishing_ms, 3), published_ms=round(back.published_ms, 3)
    )
    return _written(evidence, document)


def keep_later_life(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, before: CutDocument, nas: Machine
) -> CutDocument:
    """Audit the recording of the NAS that came back last, and look at its settings once more."""
    seq = machines.shelf.control.status().seq
    recording = load_recording(machines.shelf.recording)
    life = PowerCut(recording=recording, seq=seq, t_ms=trial.clock_ms(), took_ms=0)
    lived_on = trial.client_lives_on and not before.confirmed.is_made and before.second is None
    is_traced = lived_on and trial.attachment.source is not None
    found, audit_ms = _audited(trial, machines, life, is_second=True, is_traced=is_traced)
    changes = (*before.audit.layout_changes, *found.layout_changes)
    unlike = _unexplained(not_in_effect(trial, nas, when="at the end"), changes)
    document = replace(
        before,
        later=found.as_document(took_ms=audit_ms),
        not_in_effect=before.not_in_effect + unlike,
    )
    return _written(evidence, document)


def _written(evidence: EvidenceWriter, cut: CutDocument) -> CutDocument:
    evidence.write(CUT, cut.as_json())
    return cut


def _unexplained(unlike: Sequence[str], layout_changes: Sequence[str]) -> tuple[str, ...]:
    """The settings that are not in effect, without a layout whose change the audit itself has seen."""
    return tuple(said for said in unlike if not (layout_changes and f" {LAYOUT}: " in said))


def keep_second_cut(
    trial: Trial,
    machines: Machines,
    evidence: EvidenceWriter,
    before: CutDocument,
    second: SecondCut,
    cut: PowerCut,
) -> KeptCut:
    """Audit a second cut, after the client lived on, and write its crash state."""
    recording = cut.recording
    if not trial.filesystem.looks_like_zfs:  # else its chains, which continue, look like the NAS's
        _must_be_another_boot(recording, before)
    state = CrashState(
        recording=recording.folder, cut=cut.seq, seed=second.seed, disks=dict(second.survivors)
    )
    state_file = machines.shelf.directory / SECOND_CUT_STATE
    write_crash_state(state_file, state)
    found, audit_ms = _audited(trial, machines, cut, is_second=True)
    again = _document(cut, state, found, audit_ms=audit_ms, disks=trial.disks_left)
    return KeptCut(document=_written(evidence, replace(before, second=again)), view=state_file)


def _document(
    cut: PowerCut, state: CrashState, found: Audit, *, audit_ms: int, disks: Sequence[ShelfDisk]
) -> CutDocument:
    """The common part of both cuts in `cut.json`."""
    return CutDocument(
        t_ms=round(cut.t_ms, 3),
        took_ms=round(cut.took_ms, 3),
        log_seq=cut.seq,
        log_ms=round(cut.recording.events[cut.seq].time_ns / 1e6, 3),
        view=state.as_json() | {"recording": cut.recording.folder.name},
        phase=found.phase or "",
        audit=found.as_document(took_ms=audit_ms),
        disks=account(cut.recording, state, disks),
    )


def _must_be_another_boot(recording: Recording, before: CutDocument) -> None:
    """Raise `HarnessError` if both boots of the NAS began the same chain of their intent logs.

    The second would accept the first's blocks as its own where they happen to lie. This project
    itself would cause that loss.
    """
    former = load_recording(recording.folder.with_name(before.view["recording"]))
    if chains_in(recording) & chains_in(former):
        raise HarnessError(
            "the NAS that came back drew the same random numbers as the one before",
            hint="run the trial again: a resumed NAS draws other numbers at another moment",
        )


def _audited(
    trial: Trial,
    machines: Machines,
    cut: PowerCut,
    *,
    acknowledged: int = 0,
    issued_seq: int = 0,
    is_second: bool = False,
    is_traced: bool = True,
) -> tuple[Audit, int]:
    """The audit, and its milliseconds of a processor; `is_second`: it audits a later life of the NAS.

    `is_traced`: whether the requests of the load's client are known.

    `issued_seq`: the event before an administration's command, which continues after a reboot.

    `acknowledged`: the number of operations on the disk that have ended, if known.
    """
    begun_s = time.thread_time()
    found = audit(
        cut.recording,
        cut=cut.seq,
        terms=_terms_of(trial, issued_seq=issued_seq),
        completions=completions_before(
            trial, machines, cut, acknowledged=acknowledged, is_second=is_second
        )
        if is_traced
        else None,
    )
    if trial.filesystem.looks_like_zfs:
        found = found.marks_only()
    return found, round((time.thread_time() - begun_s) * 1000)


def _terms_of(trial: Trial, *, issued_seq: int) -> AuditTerms:
    cell = trial.cell
    return AuditTerms(
        sync=flushed_data_sync_of(cell),
        completed_sync=completed_sync_of(cell),
        waived=waived_in(cell, issued_seq=issued_seq),
        whole_on=whole_on(cell),
        writes_once=trial.filesystem.writes_once,
        names_are_volatile=names_are_volatile_in(cell),
        length_shows_metadata=shows_metadata_by_length(cell),
        only_groups_write=cell[ADMINISTRATION] is None,
        early_roles=early_roles_in(cell),
        late_ms=late_ms_of(cell),
    )
