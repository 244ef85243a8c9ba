"""One live trial: real load, a real kill, a real recovery."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from torture.choices.matrix.axes import FATE
from torture.errors import HarnessError
from torture.facts.axes.fate import Fate
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import SPEC
from torture.facts.evidence.manifest import MANIFEST_DUE
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin, TrialRecord
from torture.records.scoring.score import inconclusive, measured, score_with_manifest
from torture.trials.trial.administer import administer
from torture.trials.trial.check import inspect
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.cut import (
    KeptCut,
    keep_cut,
    keep_earlier_cut,
    keep_return,
    keep_second_cut,
)
from torture.trials.trial.link_failure import fail_link
from torture.trials.trial.measure.measurement import measure
from torture.trials.trial.moment import wait_for_moment
from torture.trials.trial.outage import BrokenOff, keep_outage
from torture.trials.trial.own_root.boots import keep_loss_of_root
from torture.trials.trial.prepared import ready_machines
from torture.trials.trial.promises.of_disk import keep_verifiers, trace_disk
from torture.trials.trial.promises.proof import not_in_effect, prove
from torture.trials.trial.recorded import recorded_stages
from torture.trials.trial.recovery import (
    bring_nas_back,
    go_on,
    keep_kernel_logs,
    stop_client,
    wait_until_idle,
)
from torture.trials.trial.setup import plant, settle, start_loads
from torture.trials.trial.shared.archive import archive_recordings
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines, PowerCut
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.walk import walk


def run_trial(
    spec: TrialSpec,
    *,
    lab: Lab,
    folder: Path,
    scratch: Path,
    enter_stage: Callable[[str], None] = lambda _stage: None,
) -> TrialRecord:
    """Run one trial, keep its evidence in `folder` and judge it.

    Never raises for a fault of the machinery: then the record is `inconclusive`, with the error.
    """
    trial = Trial.begin(spec, folder=folder, scratch=scratch, nas_host=lab.network.nas_host)
    machines = Machines(trial=trial, lab=lab)
    evidence = EvidenceWriter(folder=folder, enter_stage=enter_stage, require_host=lab.require_host)
    shelf = machines.shelf
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True)
        decided = {"zfs": lab.zfs.name, "plan": trial.plan.as_json(), "loads": trial.jobs}
        evidence.write(SPEC, spec.as_json() | {MANIFEST_DUE: True} | decided)
        with closing(machines):
            lab.boot_from(**trial.images)
            if spec.measure is not None:
                document = measure(trial, machines, evidence)
                return measured(spec, document, zfs=lab.zfs.name, timings=evidence.timings)
            stages = recorded_stages if spec.origin is Origin.REPLAY else _stages
            stages(trial, machines, evidence)
            shelf.require_healthy()
        record = score_with_manifest(folder, timings=evidence.timings)
        if spec.origin is Origin.REPLAY:
            return record
        return archive_recordings(record, of=shelf.directory, into=folder)
    except BrokenOff as failure:
        error = str(failure)
        if (known := _known_at_least(evidence, error)) is not None:
            return archive_recordings(known, of=shelf.directory, into=folder)
    except HarnessError as failure:
        error = str(failure)
    except Exception:
        # a fault of this project must not end the other trials, nor count as the NAS's
        error = f"unexpected:\n{traceback.format_exc()}"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    error += f"\n  trial: {spec.trial}, evidence: {folder}"
    return inconclusive(spec, zfs=lab.zfs.name, error=error, timings=evidence.timings)


def _known_at_least(evidence: EvidenceWriter, error: str) -> TrialRecord | None:
    """The record of a trial that broke off after it had found damage, or a broken promise."""
    try:
        record = score_with_manifest(evidence.folder, timings=evidence.timings)
    except HarnessError:
        return None
    if not record.is_conclusive and not record.is_breach:
        return None
    return record.with_reason(f"at least that, broken off: {error}")


def _stages(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> None:
    shelf, plan, fault = machines.shelf, trial.plan, trial.fault
    nas, client = ready_machines(trial, machines, evidence)
    with evidence.stage("prove"):
        prove(trial, shelf, evidence, nas=nas, client=client)
        settle(nas)
        if fault is not None:
            plant(client, fault.in_client)
            plant(nas, fault.in_nas)
    with evidence.stage("load"):
        trace_disk(trial, machines, client)
        loads = start_loads(trial, machines, evidence, client)
        if fault is not None:
            plant(client, fault.under_load)
            if fault.nas_stands_still_ms:
                nas.pause_emulator(fault.nas_stands_still_ms)
        unlike = not_in_effect(trial, nas, when="under the load")
        interrupted = None
        with keep_outage(machines, evidence):
            interrupted = fail_link(trial, machines, loads, nas)
        if interrupted is None:
            return
        link, nas = interrupted
        dying = (nas, client) if trial.cell[FATE] is Fate.BOTH_DIE else (nas,)
        shelf.halt_with_freeze(*dying)
        hit = (
            wait_for_moment(plan.cut, shelf, loads, nas)
            if plan.administration is None
            else administer(trial, shelf, evidence, loads, nas, zfs=machines.lab.zfs)
        )
    with evidence.stage("cut"):
        cut = machines.cut(dying)
        kept = keep_cut(
            trial, machines, evidence, loads, cut, hit=hit, link=link, not_in_effect=unlike
        )
    is_confirmed = kept.document.confirmed.is_made
    lives_on = trial.client_lives_on and not is_confirmed
    with keep_outage(machines, evidence):
        if not lives_on:
            if not is_confirmed:  # else the client counts as dead (`confirm`)
                _outlive(trial, evidence, client)
            client.kill()
            if trial.spec.walk_states:
                kept = _walk(trial, machines, evidence, cut, kept)
            machines.begin_checker()
        with evidence.stage("bring NAS back"):
            back = bring_nas_back(trial, machines, evidence, kept.view)
        if back is None:
            return
        if fault is not None:
            plant(back.nas, fault.after_return)
        returned = _Returned(nas=back.nas, cut=keep_return(evidence, kept.document, back))
        left = (
            _live_on(trial, machines, evidence, loads, returned, client) if lives_on else returned
        )
        if left is not None:
            inspect(trial, machines, evidence, left.nas, cut=left.cut)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Returned:
    """A NAS that came back, and the cut so far."""

    nas: Machine
    cut: CutDocument


def _walk(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, cut: PowerCut, kept: KeptCut
) -> KeptCut:
    """Walk the recording's states; the first one with a loss is recovered instead of the drawn one."""
    with evidence.stage("walk"):
        lost = walk(trial, machines, evidence, cut)
    return kept if lost is None else keep_earlier_cut(evidence, kept, lost.cut, lost.state)


def _outlive(trial: Trial, evidence: EvidenceWriter, client: Machine) -> None:
    """Let a client run without a NAS until its own power ends, where that is later."""
    for_ms = trial.plan.client_outlives_ms
    if for_ms is None:
        return
    with evidence.stage("outlive"):
        time.sleep(for_ms / 1000)
        if trial.boots_from_disk:
            return  # it starts no program without its root, and its time is over
        with suppress(HarnessError):  # it may have died by itself
            keep_kernel_logs(evidence, client=client)


def _live_on(
    trial: Trial,
    machines: Machines,
    evidence: EvidenceWriter,
    loads: Loads,
    returned: _Returned,
    client: Machine,
) -> _Returned | None:
    """The NAS to inspect once the client has lived on; None when a second cut lost its pool."""
    nas, second = returned.nas, trial.plan.second
    for_ms = trial.spec.survive_ms if second is None else second.after_ms
    with evidence.stage("live on"):
        still_writes = False
        try:
            still_writes = go_on(loads, client=client, for_ms=for_ms)
            if second is None or not still_writes:
                stop_client(trial, evidence, loads, client)
        except HarnessError as failure:
            keep_loss_of_root(trial, evidence, loads, client, failure)
            still_writes = False
        if second is None or not still_writes:
            client.kill()
            machines.begin_checker()
            wait_until_idle(trial.transport, nas)
            keep_verifiers(trial, machines, evidence)
            return returned
        loads.take_endings()
        keep_kernel_logs(evidence, client=client, nas=nas)
    with evidence.stage("cut again"):
        machines.shelf.halt_with_freeze(nas, client)
        cut = machines.cut((nas, client))
        kept = keep_second_cut(trial, machines, evidence, returned.cut, second, cut)
    machines.begin_checker()
    with evidence.stage("bring NAS back again"):
        back = bring_nas_back(trial, machines, evidence, kept.view, again=True)
    return None if back is None else _Returned(nas=back.nas, cut=kept.document)
