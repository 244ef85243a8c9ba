"""The common beginning of all trials of a set-up: a NAS and a client, saved with their disks.

A pool, an export and a filesystem take 15 s under emulation; a resume takes 3 s. This module saves
both machines while neither writes, the client first. A trial's disks are a view of the saved disks,
with the trial's own recording on top. The preparation has its consoles and other evidence in the
trial's evidence. They stay there when it fails.

A client that speaks to the NAS itself detaches before the save, and attaches anew in each trial.
The trial's own part comes next: the proof of the chain, `sync`, the load.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from torture.choices.matrix.cells import SYNC
from torture.choices.volumes import set_sync_script
from torture.errors import HarnessError
from torture.facts.axes.sync import Sync
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.model import keep_all
from torture.machines.lab.agent import StateFault, fault_of_state
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.lab.saved_states import PreparedFolders
from torture.machines.nas import pool
from torture.machines.nas.settings import RELOAD_ZFS, parameters_script, volume_options_of
from torture.machines.shelf.server import RECORDINGS_OF_SHELF
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin
from torture.records.tasks.core_tasks import Cut
from torture.trials.trial.administer import preparation_of
from torture.trials.trial.own_root import install_script, moved_onto_disk
from torture.trials.trial.promises.client_requests import listen_on_wire
from torture.trials.trial.recovery import detach, wait_until_idle
from torture.trials.trial.setup import (
    attach,
    mount_disk,
    prepare_disk,
    run_script,
    set_up_client,
    set_up_nas,
    settle,
)
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

_NAS, _CLIENT = "nas.state", "client.state"
_PREPARED = "prepared"
_STATE = "prepared.view.json"
_EVIDENCE = "prepare"
"""The folder of a failed preparation, in the evidence of the trial that made it."""
_KIND = "without faults"
"""Part of a folder's name: a trial does not use folders that were made otherwise."""
_SCRIPT_DEADLINE_S = 60


def ready_machines(
    trial: Trial, machines: Machines, evidence: EvidenceWriter
) -> tuple[Machine, Machine]:
    """A NAS with its pool and export, and the client that will write, with its disk ready.

    Raises `HarnessError` when they are not available.
    """
    folders = machines.lab.prepared
    if folders is not None and not trial.transport.traits.is_local:
        return _resumed(trial, machines, evidence, folders)
    with evidence.stage("set up NAS"):
        nas = set_up_nas(trial, machines)
    with evidence.stage("set up client"):
        listen_on_wire(trial, machines)
        client = moved_onto_disk(trial, machines, nas, set_up_client(trial, machines))
        prepare_disk(trial, client)
    return nas, client


def _resumed(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, folders: PreparedFolders
) -> tuple[Machine, Machine]:
    key = _key(trial, machines.lab)
    try:
        with folders.used(
            key, make=lambda made: _prepare(trial, machines.lab, evidence, made)
        ) as folder:
            return _resumed_from(folder, trial, machines, evidence)
    except HarnessError as error:
        if fault_of_state(error) is not StateFault.NONE:
            folders.forget(key)
        raise


def _resumed_from(
    folder: Path, trial: Trial, machines: Machines, evidence: EvidenceWriter
) -> tuple[Machine, Machine]:
    with evidence.stage("set up NAS"):
        view = _linked(folder / RECORDINGS_OF_SHELF, machines.shelf.directory / _PREPARED)
        machines.shelf.start(trial.disks, view=view / _STATE)
        nas = machines.resume_nas(folder / _NAS)
        sync = set_sync_script(trial.cell[SYNC])
        run_script(nas, sync, deadline_s=_SCRIPT_DEADLINE_S)
    with evidence.stage("set up client"):
        if not trial.attachment.guest_script:
            client = machines.resume_client("client", folder / _CLIENT)
        else:  # connections from inside the guest do not survive a save
            listen_on_wire(trial, machines)
            client = machines.start_client("client")
            attach(trial, client)
            mount_disk(trial, client)
    return nas, client


def prepared_for(spec: TrialSpec) -> TrialSpec:
    """The spec of the common beginning of a trial and all similar ones: without a planted fault."""
    cell = spec.cell.but(sync=Sync.STANDARD)
    return replace(
        spec, cell=cell, fault="", origin=Origin.LIVE, repeats="", replay_of="", task=Cut()
    )


def _prepare(trial: Trial, lab: Lab, evidence: EvidenceWriter, folder: Path) -> None:
    """Set up the common beginning of trials similar to this one in `folder`, and save it."""
    kept = trial.folder / _EVIDENCE
    kept.mkdir(exist_ok=True)
    common = Trial.begin(
        prepared_for(trial.spec), folder=kept, scratch=folder, nas_host=lab.network.nas_host
    )
    machines = Machines(trial=common, lab=lab)
    preparing = EvidenceWriter(
        folder=kept, enter_stage=lambda stage: evidence.enter_stage(f"prepare: {stage}")
    )
    with evidence.stage("prepare"), closing(machines):
        with preparing.stage("set up NAS"):
            nas = set_up_nas(common, machines)
        with preparing.stage("set up client"):
            client = moved_onto_disk(common, machines, nas, set_up_client(common, machines))
            prepare_disk(common, client)
            settle(nas)
        with preparing.stage("save"):
            if not common.attachment.guest_script:
                client.save(folder / _CLIENT)
            else:
                detach(common, preparing, client)
                client.kill()
            wait_until_idle(common.transport, nas)
            settle(nas)
            nas.save(folder / _NAS)
        shelf = machines.shelf
        shelf.require_healthy()
        last = shelf.control.status().seq
        state = keep_all(shelf.recording, cut=last, disks=common.disks)
        write_crash_state(shelf.directory / _STATE, state)
    shutil.rmtree(kept)


def _key(trial: Trial, lab: Lab) -> str:
    """A name that depends on everything that the common beginning consists of."""
    cell, attachment, filesystem = trial.cell, trial.attachment, trial.filesystem
    options = volume_options_of(cell.but(sync=Sync.STANDARD))
    jobs = trial.jobs
    recipe: list[object] = [
        _KIND,
        *lab.keys(preload=attachment.preload),
        [
            [disk.serial, disk.size_mib, disk.sector_bytes, disk.physical_sector_bytes]
            for disk in trial.disks
        ],
        RELOAD_ZFS,
        parameters_script(cell),
        pool.create_script(cell),
        *filter(None, [preparation_of(cell)]),
        trial.transport.make_volume_script(options),
        trial.transport.publish_script(options),
        str(attachment.source),
        attachment.guest_script,
        *([] if attachment.image is None else [attachment.image.make_script]),
        attachment.device,
        attachment.is_written_through,
        [workload.prepare(jobs[workload.name]) for workload in trial.workloads],
    ]
    if trial.has_own_filesystem:
        recipe += [filesystem.make, filesystem.mount]
    if options.takes_discards:
        recipe.append(filesystem.discarding)
    if trial.boots_from_disk:
        recipe += [trial.root_words, install_script(trial)]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:20]


def _linked(source: Path, target: Path) -> Path:
    """The trial's own copy of a folder; its files are links where possible, which take no room."""
    try:
        shutil.copytree(source, target, copy_function=_link)
    except OSError as error:
        raise HarnessError(f"{source} cannot be copied to {target}: {error}") from error
    return target


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
