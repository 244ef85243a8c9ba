"""The stages before the load: a NAS with a pool and an export, a client with its disk ready."""

from __future__ import annotations

from functools import partial

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.workloads.protocol import Surroundings
from torture.facts.evidence.folder import Step
from torture.facts.recording.disks import ShelfDisk
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.shell import discards_of, sector_bytes_of, wait_for_path, write_cache_of
from torture.trials.trial.administer import preparation_of
from torture.trials.trial.loads import Loads, content_of
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, must_not_hang, storage_must

_DISKS_DEADLINE_S = 40
_SCRIPT_DEADLINE_S = 60
_POOL_DEADLINE_S = 180
"""Enough for three tries."""
_MAKE_DEADLINE_S = 120
_PREPARE_DEADLINE_S = 420
"""A database's preparation takes half a minute; under emulation on a loaded host, some minutes."""
_PLANT_DEADLINE_S = 120
_SECTOR_BYTES = 512


def set_up_nas(trial: Trial, machines: Machines) -> Machine:
    """The NAS, with its disks, pool, volume and export."""
    machines.shelf.start(trial.disks)
    was_saved = machines.lab.can_plug_in
    nas = machines.start_nas(1, trial.disks, draws_anew=was_saved)
    wait_for_disks(nas, trial.disks)
    run_script(nas, pool.make_script(trial.cell), deadline_s=_POOL_DEADLINE_S)
    volume = trial.transport.make_volume_script(trial.volume_options)
    run_script(nas, volume, deadline_s=_SCRIPT_DEADLINE_S)
    plant(nas, preparation_of(trial.cell))
    publish = trial.transport.publish_script(trial.volume_options)
    run_script(nas, publish, deadline_s=_SCRIPT_DEADLINE_S)
    return nas


def wait_for_disks(nas: Machine, disks: tuple[ShelfDisk, ...]) -> None:
    """Return once the NAS has found its disks."""
    run_script(nas, pool.wait_for_disks_script(disks), deadline_s=_DISKS_DEADLINE_S)


def set_up_client(trial: Trial, machines: Machines) -> Machine:
    """The client that will write, with its disk or directory attached, and a new image on it."""
    client = machines.start_client("client")
    attach(trial, client, makes_image=True)
    return client


def attach(
    trial: Trial,
    client: Machine,
    *,
    makes_image: bool = False,
    deadline_s: float = _DISKS_DEADLINE_S,
) -> None:
    """Return once the client has its attachment; a device must have the right kind of cache.

    Raises `StorageFailed` when the client hangs, `HarnessError` when the NAS refuses the client.
    """
    image = trial.attachment.image
    scripts = [trial.attachment.guest_script]
    if image is not None:
        scripts += [image.make_script if makes_image else "", image.open_script]
    for script in filter(None, scripts):
        must_not_hang(
            client, "the client hung while it attached its storage", script, deadline_s=deadline_s
        )
    if script := _device_script(trial):
        run_script(client, script, deadline_s=_DISKS_DEADLINE_S)


def attach_again(
    trial: Trial, client: Machine, evidence: EvidenceWriter, *, deadline_s: float
) -> bool:
    """Attach again after the cut. It succeeded before, so a refusal is the storage's failure, too.

    False where a hypervisor cannot open its image. Raises `StorageFailed`.
    """
    if script := trial.attachment.guest_script:
        refused = "the client could not attach its storage again"
        storage_must(client, refused, script, deadline_s=deadline_s)
    if (image := trial.attachment.image) is not None:
        evidence.observe_to_end(client, Step.IMAGE_CHECK, image.check, deadline_s=deadline_s)
        opening = ("sh", "-c", image.open_script)
        opened = evidence.observe_to_end(client, Step.IMAGE_OPEN, opening, deadline_s=deadline_s)
        if opened.exit_code != 0:
            return False
    if script := _device_script(trial):
        gone = "the device differs from before the cut"
        storage_must(client, gone, script, deadline_s=_DISKS_DEADLINE_S)
    return True


def _device_script(trial: Trial) -> str:
    """Shell: wait for the client's device and check it; empty where it has none."""
    attachment, options = trial.attachment, trial.volume_options
    if attachment.device is None:
        return ""
    script = wait_for_path(attachment.device)
    if attachment.has_write_cache:
        script += f'; test "$({write_cache_of(attachment.device)})" = "write back"'
    if options.sector_bytes != _SECTOR_BYTES:
        script += f'; test "$({sector_bytes_of(attachment.device)})" = {options.sector_bytes}'
    if options.takes_discards:
        script += f'; test "$({discards_of(attachment.device)})" -gt 0'
    return script


def prepare_disk(trial: Trial, client: Machine) -> None:
    """Make the cell's filesystem and the loads' files on it: durable before the loads begin."""
    if trial.has_own_filesystem:
        if not trial.boots_from_disk:
            client.must(*trial.filesystem.make, deadline_s=_MAKE_DEADLINE_S)
        mount_disk(trial, client)
    jobs = trial.jobs
    scripts = [workload.prepare(jobs[workload.name]) for workload in trial.workloads]
    if trial.is_mounted:
        scripts.append(f"sync -f {MOUNT_POINT}")
    if needed := [script for script in scripts if script]:
        run_script(client, " && ".join(needed), deadline_s=_PREPARE_DEADLINE_S)


def mount_disk(trial: Trial, client: Machine) -> None:
    """Mount the client's filesystem, if it has one of its own.

    A client's root is mounted already; this mounts it once more. So a load's files have the same
    name in this client and in the client that checks.
    """
    if trial.has_own_filesystem:
        mount = trial.filesystem.mount
        if trial.boots_from_disk:
            mount = ("mount", "--bind", "/", MOUNT_POINT)
        client.must(*mount, deadline_s=_SCRIPT_DEADLINE_S)
        discarding = trial.filesystem.discarding
        if trial.volume_options.takes_discards and discarding is not None:
            client.must(*discarding, deadline_s=_SCRIPT_DEADLINE_S)


def start_loads(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, client: Machine
) -> Loads:
    """Start every workload of the cell, and return once each has acknowledged an operation."""
    surroundings = Surroundings(
        guest=client.agent,
        open_ledger=machines.open_ledger,
        keep=partial(evidence.keep, Step.CLIENT_LOAD),
        content_of=content_of,
    )
    jobs = trial.jobs
    return Loads(tuple(load.start(jobs[load.name], surroundings) for load in trial.workloads))


def settle(nas: Machine) -> None:
    """Commit everything to the pool; only later writes can be lost at a cut."""
    nas.must(*pool.SYNC, deadline_s=_SCRIPT_DEADLINE_S)


def plant(machine: Machine, script: str) -> None:
    """Run a fault's script in a machine, if it has one."""
    if script:
        run_script(machine, script, deadline_s=_PLANT_DEADLINE_S)


def run_script(machine: Machine, script: str, *, deadline_s: float) -> None:
    """Run a shell script that has to succeed; raises `HarnessError`."""
    machine.must("sh", "-c", script, deadline_s=deadline_s)
