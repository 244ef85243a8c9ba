"""One live trial: real load, a real kill, a real recovery."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from torture.choices.workloads import image_needed
from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC, load_evidence, write_document
from torture.facts.evidence.manifest import MANIFEST_DUE
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin, TrialRecord
from torture.records.scoring.score import inconclusive, score_with_manifest
from torture.trials.trial.administered.issue import administer
from torture.trials.trial.archive import archive_recordings
from torture.trials.trial.context import TrialContext
from torture.trials.trial.cut import (
    cut_power,
    cut_power_again,
    note_return,
    victims,
    wait_for_moment,
)
from torture.trials.trial.inspect import inspect
from torture.trials.trial.outage import BrokenOff, after_the_cut
from torture.trials.trial.own_root.lost_root import keep_loss_of_root
from torture.trials.trial.prepared import ready_machines
from torture.trials.trial.promises.of_disk import trace_disk
from torture.trials.trial.promises.proof import prove
from torture.trials.trial.recorded import recorded_stages
from torture.trials.trial.recovery import (
    bring_nas_back,
    go_on,
    say_last_words,
    stop_client,
    wait_until_idle,
)
from torture.trials.trial.setup import plant, settle, start_loads


def run_trial(
    spec: TrialSpec,
    *,
    lab: Lab,
    folder: Path,
    scratch: Path,
    enter_stage: Callable[[str], None] = lambda _stage: None,
) -> TrialRecord:
    """Run one trial, keep its evidence in `folder` and judge it.

    Never raises for a fault of the machinery: the record is then `inconclusive`, with the error.
    """
    context = TrialContext(
        spec=spec, lab=lab, folder=folder, scratch=scratch, enter_stage=enter_stage
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True)
        write_document(folder, SPEC, spec.as_json() | _decided(context))
        with closing(context):
            lab.boot_clients_from(image_needed(context.workloads))
            stages = recorded_stages if spec.origin is Origin.REPLAY else _stages
            stages(context)
            context.shelf.require_healthy()
        record = score_with_manifest(folder, timings=context.timings)
        if spec.origin is Origin.REPLAY:
            return record
        return archive_recordings(record, of=context.shelf.directory, into=folder)
    except BrokenOff as failure:
        error = str(failure)
        if (known := _known_at_least(context, error)) is not None:
            return archive_recordings(known, of=context.shelf.directory, into=folder)
    except HarnessError as failure:
        error = str(failure)
    except Exception:
        # a fault of ours must not end the other trials, nor be taken for the NAS's
        error = f"unexpected:\n{traceback.format_exc()}"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    error += f"\n  trial: {spec.trial}, evidence: {folder}"
    return inconclusive(spec, zfs=lab.zfs.name, error=error, timings=context.timings)


def _known_at_least(context: TrialContext, error: str) -> TrialRecord | None:
    """The record of a trial that was broken off after something acknowledged was found to be lost."""
    try:
        record = score_with_manifest(context.folder, timings=context.timings)
    except HarnessError:
        return None
    if not record.is_conclusive or not record.verdict.is_loss:
        return None
    return record.with_reason(f"at least that, broken off: {error}")


def _decided(context: TrialContext) -> dict[str, Any]:
    """What `spec.json` says beside the spec: all that was decided before anything was started."""
    return {
        MANIFEST_DUE: True,
        "zfs": context.lab.zfs.name,
        "plan": context.plan.as_json(),
        "loads": context.jobs,
    }


def _stages(context: TrialContext) -> None:
    nas, client = ready_machines(context)
    with context.stage("prove"):
        prove(context, nas=nas, client=client)
        settle(nas)
        if context.fault is not None:
            plant(client, context.fault.in_client)
            plant(nas, context.fault.in_nas)
    dying = victims(context, nas=nas, client=client)
    with context.stage("load"):
        trace_disk(context, client)
        start_loads(context, client)
        if context.fault is not None and context.fault.nas_stands_still_ms:
            nas.pause_emulator(context.fault.nas_stands_still_ms)
        context.shelf.halt_with_freeze(*dying)
        hit = (
            wait_for_moment(context, nas)
            if context.plan.administration is None
            else administer(context, nas, context.plan.administration)
        )
    with context.stage("cut"):
        state = cut_power(context, hit=hit, victims=dying)
    with after_the_cut(context):
        _recover(context, client, state)


def _recover(context: TrialContext, client: Machine, state: Path) -> None:
    if not context.client_lives_on:
        _outlive(context, client)
        client.kill()
        context.begin_checker()
    with context.stage("bring NAS back"):
        returned = bring_nas_back(context, state)
    note_return(context)
    if returned is None:
        return
    if context.client_lives_on:
        checked = _live_on(context, returned, client)
        if checked is None:
            return
        returned = checked
    inspect(context, returned)


def _outlive(context: TrialContext, client: Machine) -> None:
    """Leave a client without a NAS for as long as its own power lasts, where that is longer.

    After a confirmed finding it is taken for dead (`confirm`).
    """
    for_ms = context.plan.client_outlives_ms
    if for_ms is None or load_evidence(context.folder).cut.confirmed.is_made:
        return
    with context.stage("outlive"):
        time.sleep(for_ms / 1000)
        if context.boots_from_disk:
            return  # it starts no program while its root is away, and its time is over
        with suppress(HarnessError):  # it may have died of its own
            say_last_words(context, client=client)


def _live_on(context: TrialContext, nas: Machine, client: Machine) -> Machine | None:
    """The NAS to inspect once the client has lived on; None when a second cut took its pool for good."""
    second = context.plan.second
    for_ms = context.spec.survive_ms if second is None else second.after_ms
    with context.stage("live on"):
        still_writes = False
        try:
            still_writes = go_on(context, client=client, for_ms=for_ms)
            if second is None or not still_writes:
                stop_client(context, client=client)
        except HarnessError as failure:
            keep_loss_of_root(context, client, failure)
            still_writes = False
        if second is None or not still_writes:
            client.kill()
            context.begin_checker()
            wait_until_idle(context, nas)
            return nas
        context.loads.take_endings()
        say_last_words(context, client=client, nas=nas)
    with context.stage("cut again"):
        state = cut_power_again(context, second, victims=(nas, client))
    context.begin_checker()
    with context.stage("bring NAS back again"):
        return bring_nas_back(context, state, again=True)
