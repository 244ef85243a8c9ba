"""What all trials of a set-up begin with, made once: a NAS and a client, saved with their disks.

A pool, an export and a filesystem take 15 s under emulation; resumed they take 3. They are saved while
nothing is being written, the client first, and a trial's disks are a view of what they held then, with
its own recording on top. A client that speaks to the NAS itself lets go of it before, and attaches
anew in each trial. What a trial is about comes after that: the proof of the chain, `sync`, the load.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.axes import SYNC
from torture.choices.volumes import set_sync_script
from torture.errors import HarnessError
from torture.facts.axes.sync import Sync
from torture.facts.recording.accounting import keep_all
from torture.facts.recording.crash_state import write_crash_state
from torture.machines.lab.machine import Machine
from torture.machines.lab.prepared_folders import PreparedFolders
from torture.machines.lab.resume_failures import StateFault, fault_of_state
from torture.machines.nas import pool
from torture.machines.nas.settings import RELOAD_ZFS, parameters_script
from torture.machines.nas.volume_options import volume_options_of
from torture.machines.shelf.server import RECORDINGS_OF_SHELF
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin
from torture.trials.trial.administered import preparation_of
from torture.trials.trial.context import TrialContext
from torture.trials.trial.own_root.install import install_script, moved_onto_disk, root_words
from torture.trials.trial.promises.of_disk import listen_on_wire
from torture.trials.trial.recovery import let_go, wait_until_idle
from torture.trials.trial.setup import (
    mount_disk,
    prepare_disk,
    run_script,
    set_up_client,
    set_up_nas,
    settle,
)

_NAS, _CLIENT = "nas.state", "client.state"
_PREPARED = "prepared"
_STATE = "prepared.view.json"
_KIND = "without faults"
"""Of what is prepared: folders that were made otherwise are not used."""
_SCRIPT_DEADLINE_S = 60


def ready_machines(context: TrialContext) -> tuple[Machine, Machine]:
    """A NAS with its pool and export, and the client that will write, its disk ready.

    Raises `HarnessError` when they cannot be had.
    """
    folders = context.lab.prepared
    if folders is None:
        with context.stage("set up NAS"):
            nas = set_up_nas(context)
        with context.stage("set up client"):
            listen_on_wire(context)
            client = moved_onto_disk(context, nas, set_up_client(context))
            prepare_disk(context, client)
        return nas, client
    return _resumed(context, folders)


def _can_client_be_saved(context: TrialContext) -> bool:
    """Connections from inside the guest would not survive it: such a client attaches anew each time."""
    return not context.attachment.attach_script


def _resumed(context: TrialContext, folders: PreparedFolders) -> tuple[Machine, Machine]:
    key = _key(context)
    folder = folders.ensure(key, make=lambda folder: _prepare(context, folder))
    try:
        with context.stage("set up NAS"):
            view = _linked(folder / RECORDINGS_OF_SHELF, context.shelf.directory / _PREPARED)
            context.shelf.start(context.disks, view=view / _STATE)
            nas = context.resume_nas(folder / _NAS)
            sync = set_sync_script(context.spec.cell[SYNC])
            run_script(nas, sync, deadline_s=_SCRIPT_DEADLINE_S)
        with context.stage("set up client"):
            if _can_client_be_saved(context):
                client = context.resume_client("client", folder / _CLIENT)
            else:
                listen_on_wire(context)
                client = set_up_client(context)
                mount_disk(context, client)
    except HarnessError as error:
        if fault_of_state(error) is not StateFault.NONE:
            folders.forget(key)
        raise
    return nas, client


def prepared_for(spec: TrialSpec) -> TrialSpec:
    """What is set up for a trial and all that are like it: without what was planted in this one."""
    cell = spec.cell.but(sync=Sync.STANDARD)
    return replace(spec, cell=cell, fault="", origin=Origin.LIVE, repeats="", replay_of="")


def _prepare(context: TrialContext, folder: Path) -> None:
    """Set up in `folder` what trials like this one begin with, and save it."""
    preparing = TrialContext(
        spec=prepared_for(context.spec),
        lab=context.lab,
        folder=folder,
        scratch=folder,
        enter_stage=lambda stage: context.enter_stage(f"prepare: {stage}"),
    )
    with context.stage("prepare"), closing(preparing):
        with preparing.stage("set up NAS"):
            nas = set_up_nas(preparing)
        with preparing.stage("set up client"):
            client = moved_onto_disk(preparing, nas, set_up_client(preparing))
            prepare_disk(preparing, client)
            settle(nas)
        with preparing.stage("save"):
            if _can_client_be_saved(context):
                client.save(folder / _CLIENT)
            else:
                let_go(preparing, client)
                client.kill()
            wait_until_idle(preparing, nas)
            settle(nas)
            nas.save(folder / _NAS)
        shelf = preparing.shelf
        shelf.require_healthy()
        last = shelf.control.status().seq
        state = keep_all(shelf.recording, cut=last, disks=preparing.disks)
        write_crash_state(shelf.directory / _STATE, state)


def _key(context: TrialContext) -> str:
    """A name for everything that goes into it."""
    cell = context.spec.cell
    attachment, filesystem = context.attachment, context.filesystem
    options = volume_options_of(cell.but(sync=Sync.STANDARD))
    recipe: list[object] = [
        _KIND,
        *context.lab.keys(preload=attachment.preload),
        [
            [disk.serial, disk.size_mib, disk.sector_bytes, disk.physical_sector_bytes]
            for disk in context.disks
        ],
        RELOAD_ZFS,
        parameters_script(cell),
        pool.create_script(cell),
        *filter(None, [preparation_of(cell)]),
        context.transport.make_volume_script(options),
        context.transport.publish_script(options),
        "" if attachment.source is None else ET.tostring(attachment.source.element()).decode(),
        attachment.attach_script,
        attachment.device,
        attachment.is_written_through,
        [workload.prepare(context.jobs[workload.name]) for workload in context.workloads],
    ]
    if attachment.device is not None and filesystem.has_files:
        recipe += [
            filesystem.make(attachment.device),
            filesystem.mount(attachment.device, MOUNT_POINT),
        ]
    if options.takes_discards:
        recipe.append(filesystem.discarding(MOUNT_POINT))
    if context.boots_from_disk:
        recipe += [root_words(context), install_script(context)]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:20]


def _linked(source: Path, target: Path) -> Path:
    """A copy that takes no room where that can be: the trial's own, whatever becomes of the first."""
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
