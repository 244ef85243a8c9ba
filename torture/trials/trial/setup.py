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
from torture.trials.trial import administered
from torture.trials.trial.client_load.brought import content_of
from torture.trials.trial.context import TrialContext
from torture.trials.trial.outage import must_not_hang, storage_must

_DISKS_DEADLINE_S = 40
_SCRIPT_DEADLINE_S = 60
_POOL_DEADLINE_S = 180
"""Three tries."""
_MAKE_DEADLINE_S = 120
_PREPARE_DEADLINE_S = 420
"""A database is installed in half a minute, under emulation on a loaded host in some minutes."""
_PLANT_DEADLINE_S = 120
_SECTOR_BYTES = 512


def set_up_nas(context: TrialContext) -> Machine:
    """Disks, pool, volume, export."""
    context.shelf.start(context.disks)
    was_saved = context.lab.can_plug_in
    nas = context.start_nas(1, context.disks, draws_anew=was_saved)
    wait_for_disks(nas, context.disks)
    cell = context.spec.cell
    run_script(nas, pool.make_script(cell), deadline_s=_POOL_DEADLINE_S)
    volume = context.transport.make_volume_script(context.volume_options)
    run_script(nas, volume, deadline_s=_SCRIPT_DEADLINE_S)
    plant(nas, administered.preparation_of(cell))
    publish(context, nas)
    return nas


def wait_for_disks(nas: Machine, disks: tuple[ShelfDisk, ...]) -> None:
    """Return once the NAS knows its disks."""
    run_script(nas, pool.wait_for_disks_script(disks), deadline_s=_DISKS_DEADLINE_S)


def publish(context: TrialContext, nas: Machine) -> None:
    """Offer the volume to the client."""
    run_script(
        nas, context.transport.publish_script(context.volume_options), deadline_s=_SCRIPT_DEADLINE_S
    )


def set_up_client(context: TrialContext) -> Machine:
    """The client that will write, with what the transport gives it in sight."""
    client = context.start_client("client")
    attach(context, client)
    return client


def attach(
    context: TrialContext, client: Machine, *, deadline_s: float = _DISKS_DEADLINE_S
) -> None:
    """Return once the client sees what it attaches; a device must have the cache it should have.

    Raises `StorageFailed` when it hangs on what it attaches, `HarnessError` when it is refused that.
    """
    if script := context.attachment.attach_script:
        must_not_hang(client, "the client hung on what it attaches", script, deadline_s=deadline_s)
    if script := _device_script(context):
        run_script(client, script, deadline_s=_DISKS_DEADLINE_S)


def attach_again(context: TrialContext, client: Machine, *, deadline_s: float) -> None:
    """The same after the cut, where it succeeded before: a refusal is the storage's, too.

    Raises `StorageFailed`.
    """
    if script := context.attachment.attach_script:
        refused = "the client is refused what it attached before the cut"
        storage_must(client, refused, script, deadline_s=deadline_s)
    if script := _device_script(context):
        gone = "the device is not as it was before the cut"
        storage_must(client, gone, script, deadline_s=_DISKS_DEADLINE_S)


def _device_script(context: TrialContext) -> str:
    """Waits for the client's device and looks at it; empty where it has none."""
    attachment = context.attachment
    if attachment.device is None:
        return ""
    script = wait_for_path(attachment.device)
    if attachment.has_write_cache:
        script += f'; test "$({write_cache_of(attachment.device)})" = "write back"'
    if (sector_bytes := context.volume_options.sector_bytes) != _SECTOR_BYTES:
        script += f'; test "$({sector_bytes_of(attachment.device)})" = {sector_bytes}'
    if context.volume_options.takes_discards:
        script += f'; test "$({discards_of(attachment.device)})" -gt 0'
    return script


def prepare_disk(context: TrialContext, client: Machine) -> None:
    """A filesystem if the cell has one, and what the loads need on it, durable before they begin."""
    has_own = context.attachment.device is not None and context.filesystem.has_files
    if has_own:
        if not context.boots_from_disk:
            client.must(*context.filesystem.make(context.device), deadline_s=_MAKE_DEADLINE_S)
        mount_disk(context, client)
    jobs = context.jobs
    scripts = [workload.prepare(jobs[workload.name]) for workload in context.workloads]
    if context.is_mounted:
        scripts.append(f"sync -f {MOUNT_POINT}")
    if needed := [script for script in scripts if script]:
        run_script(client, " && ".join(needed), deadline_s=_PREPARE_DEADLINE_S)


def mount_disk(context: TrialContext, client: Machine) -> None:
    """Mount the client's filesystem, if it has one of its own.

    Where that is its root already it is mounted once more, so that a load's files have one name here and
    where the disk is mounted by another client.
    """
    if context.attachment.device is not None and context.filesystem.has_files:
        mount = context.filesystem.mount(context.device, MOUNT_POINT)
        if context.boots_from_disk:
            mount = ("mount", "--bind", "/", MOUNT_POINT)
        client.must(*mount, deadline_s=_SCRIPT_DEADLINE_S)
        discarding = context.filesystem.discarding(MOUNT_POINT)
        if context.volume_options.takes_discards and discarding is not None:
            client.must(*discarding, deadline_s=_SCRIPT_DEADLINE_S)


def start_loads(context: TrialContext, client: Machine) -> None:
    """Start every workload of the cell; each has acknowledged something when this returns."""
    surroundings = Surroundings(
        guest=client.agent,
        open_ledger=context.open_ledger,
        keep=partial(context.keep, Step.CLIENT_LOAD),
        content_of=content_of,
    )
    jobs = context.jobs
    for workload in context.workloads:
        load = workload.start(jobs[workload.name], surroundings)
        context.loads.running.append(load)


def settle(nas: Machine) -> None:
    """Put everything into the pool for good; what comes after it can be lost at a cut."""
    nas.must(*pool.SYNC, deadline_s=_SCRIPT_DEADLINE_S)


def plant(machine: Machine, script: str) -> None:
    """Run a fault's script in a machine, if it has one."""
    if script:
        run_script(machine, script, deadline_s=_PLANT_DEADLINE_S)


def run_script(machine: Machine, script: str, *, deadline_s: float) -> None:
    """Run a shell script that has to succeed; raises `HarnessError`."""
    machine.must("sh", "-c", script, deadline_s=deadline_s)
