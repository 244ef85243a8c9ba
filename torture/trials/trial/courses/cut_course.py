"""A load, a real kill in it, a real recovery, and a check."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from torture.choices.matrix.cell_terms import may_fail_before_cut
from torture.choices.matrix.cells import AWAY, EVENT, FATE, NAS_LINK
from torture.errors import HarnessError
from torture.facts.axes.away import AWAY_STAGE
from torture.facts.axes.event import Event
from torture.facts.axes.fate import Fate
from torture.facts.evidence.cut_document import CutDocument
from torture.machines.lab.machine import Machine
from torture.records.tasks.core_tasks import Cut
from torture.trials.trial.administer import administer
from torture.trials.trial.check import inspect
from torture.trials.trial.courses.protocol import Course
from torture.trials.trial.cut import KeptCut, keep_cut, keep_return, keep_second_cut
from torture.trials.trial.ending import end_service
from torture.trials.trial.loads import Loads
from torture.trials.trial.moment import let_load_run, wait_for_moment
from torture.trials.trial.outage import fail_link, keep_outage
from torture.trials.trial.own_root import keep_loss_of_root
from torture.trials.trial.prepared_machines import ready_machines
from torture.trials.trial.promises.client_requests import keep_verifiers, trace_disk
from torture.trials.trial.promises.proof import not_in_effect, prove
from torture.trials.trial.recovery import (
    bring_nas_back,
    go_on,
    keep_kernel_logs,
    stop_client,
    wait_until_idle,
)
from torture.trials.trial.setup import plant, settle, start_loads
from torture.trials.trial.shared.machines import Machines, PowerCut, Trial
from torture.trials.trial.shared.resident import PATIENCE_S, EvidenceWriter
from torture.trials.trial.takeover import cache_of, return_former

Look = Callable[[PowerCut, KeptCut], KeptCut]
"""A look at the recording of a cut while no machine runs; it may choose another state to recover."""


def _looks_away(_cut: PowerCut, kept: KeptCut) -> KeptCut:
    return kept


def cut_and_recover(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, look: Look = _looks_away
) -> None:
    """The stages. `look` is asked where all machines have died."""
    shelf, fault = machines.shelf, trial.fault
    nas, client = ready_machines(trial, machines, evidence)
    with evidence.stage("prove"):
        prove(trial, shelf, evidence, nas=nas, client=client)
        cache = cache_of(nas) if trial.cell[EVENT] is Event.TAKEOVER else b""
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
        dies_too = trial.cell[FATE] is Fate.BOTH_DIE and client is not nas
        dying = (nas, client) if dies_too else (nas,)
        hit = _reach_cut(trial, machines, evidence, loads, dying)
        if hit is None:
            return
    dies_alone = trial.cell[FATE] is Fate.CLIENT_ONLY
    with evidence.stage("cut"):
        cut = machines.cut_client(client) if dies_alone else machines.cut(dying)
        kept = keep_cut(
            trial, machines, evidence, loads, cut, hit=hit, link=link, not_in_effect=unlike
        )
    is_confirmed = kept.document.confirmed.is_made
    lives_on = trial.client_lives_on and not is_confirmed
    with keep_outage(machines, evidence):
        if dies_alone:
            machines.begin_checker()
            wait_until_idle(trial.transport, nas)
            inspect(trial, machines, evidence, nas, cut=None)
            return
        if not lives_on:
            if not is_confirmed:  # else the client counts as dead (`confirm`)
                _outlive(trial, evidence, client)
            client.kill()
            kept = look(cut, kept)
            machines.begin_checker()
        if lives_on and (away_s := _stays_away_s(trial, cut)):
            with evidence.stage(AWAY_STAGE):
                time.sleep(away_s)
        with evidence.stage("bring NAS back"):
            back = bring_nas_back(trial, machines, evidence, kept.view)
        if back is None:
            return
        if fault is not None:
            plant(back.nas, fault.after_return)
        returned = _Returned(
            nas=back.nas, cut=keep_return(evidence, kept.document, back), former_cache=cache
        )
        left = (
            _live_on(trial, machines, evidence, loads, returned, client) if lives_on else returned
        )
        if left is not None:
            inspect(trial, machines, evidence, left.nas, cut=left.cut)


def _reach_cut(
    trial: Trial,
    machines: Machines,
    evidence: EvidenceWriter,
    loads: Loads,
    dying: tuple[Machine, ...],
) -> bool | None:
    """Whether the plan's target came; None where the NAS could not end its service, which is evidence."""
    plan, shelf, (nas, *_) = trial.plan, machines.shelf, dying
    if trial.cell[FATE] is not Fate.CLIENT_ONLY and not trial.cell[EVENT].is_of_its_kernel:
        shelf.halt_with_freeze(*dying)
    if may_fail_before_cut(trial.cell):
        let_load_run(plan.cut, shelf, loads, may_end=True)
        hit = not loads.are_over
    elif plan.administration is None:
        hit = wait_for_moment(plan.cut, shelf, loads, nas)
    else:
        hit = administer(trial, shelf, evidence, loads, nas, zfs=machines.lab.zfs)
    with keep_outage(machines, evidence):
        end_service(trial, nas)
        return hit
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Returned:
    """A NAS that came back, and the cut so far."""

    nas: Machine
    cut: CutDocument
    former_cache: bytes = b""
    """The pool's cache file of the node that it has taken over from."""


def _stays_away_s(trial: Trial, cut: PowerCut) -> float:
    """The rest of the time without power; a link that failed for that time did so before the cut."""
    if trial.cell[NAS_LINK].is_of_link:
        return 0.0
    return max(0.0, trial.cell[AWAY] - (trial.clock_ms() - cut.t_ms) / 1000)


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
            patience_s = PATIENCE_S + trial.cell[AWAY]
            still_writes = go_on(loads, client=client, for_ms=for_ms, patience_s=patience_s)
            if returned.former_cache:
                return_former(trial, machines, evidence, returned.former_cache)
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


COURSE = Course(task=Cut, stages=cut_and_recover)
