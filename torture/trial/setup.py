"""The stages before the load: a NAS with a pool and an export, a client with a filesystem on it."""

from __future__ import annotations

from torture.filesystems import DEVICE, MOUNT_POINT
from torture.lab.machine import Machine
from torture.nas import pool
from torture.record.specs import Fault
from torture.recording.disks import ShelfDisk
from torture.trial.context import TrialContext
from torture.workloads.ledger import LOAD_DIRECTORY

_DISKS_DEADLINE_S = 40
_SCRIPT_DEADLINE_S = 60
_MAKE_DEADLINE_S = 120


def set_up_nas(context: TrialContext) -> tuple[Machine, dict[str, str]]:
    """Disks, pool, zvol, export; also the write cache mode of each disk."""
    context.shelf.start(context.disks)
    nas = context.start_nas(1, context.disks)
    caches = wait_for_disks(nas, context.disks)
    run_script(nas, pool.create_script(context.spec.cell), deadline_s=_SCRIPT_DEADLINE_S)
    publish(context, nas)
    return nas, caches


def wait_for_disks(nas: Machine, disks: tuple[ShelfDisk, ...]) -> dict[str, str]:
    """Return once the NAS knows its disks; the write cache mode of each, by serial."""
    script = pool.wait_for_disks_script(disks)
    said = nas.must("sh", "-c", script, deadline_s=_DISKS_DEADLINE_S).stdout
    lines = (line.partition(" ")[::2] for line in said.splitlines())
    return dict(lines)


def publish(context: TrialContext, nas: Machine) -> None:
    """Offer the zvol to the client."""
    run_script(nas, context.export.publish_script(), deadline_s=_SCRIPT_DEADLINE_S)


def set_up_client(context: TrialContext) -> Machine:
    """The client, with its disk in sight."""
    client = context.start_client("client")
    wait_for_client_disk(client)
    return client


def make_filesystem(context: TrialContext, client: Machine) -> None:
    """A filesystem with the load's directory, durable before the load begins."""
    if context.filesystem.has_files:
        client.must(*context.filesystem.make(DEVICE), deadline_s=_MAKE_DEADLINE_S)
        client.must(*context.filesystem.mount(DEVICE, MOUNT_POINT), deadline_s=_SCRIPT_DEADLINE_S)
        run_script(
            client,
            f"mkdir {LOAD_DIRECTORY} && sync -f {MOUNT_POINT}",
            deadline_s=_SCRIPT_DEADLINE_S,
        )


def settle(nas: Machine) -> None:
    """Put everything into the pool for good; what comes after it can be lost at a cut."""
    nas.must("zpool", "sync", pool.POOL, deadline_s=_SCRIPT_DEADLINE_S)


def plant(nas: Machine, fault: Fault) -> None:
    """Make the NAS faulty, if the trial wants it to be."""
    if fault is Fault.NO_CACHE_FLUSH:
        switch = f"/sys/module/zfs/parameters/{fault}"
        run_script(nas, f"echo 1 > {switch}", deadline_s=_SCRIPT_DEADLINE_S)


def wait_for_client_disk(client: Machine) -> None:
    """Return once the client sees its disk, which must have a write cache."""
    run_script(
        client,
        f"{pool.wait_for_path_script(DEVICE)}; "
        f'test "$(cat /sys/block/{DEVICE.removeprefix("/dev/")}/queue/write_cache)" = "write back"',
        deadline_s=_DISKS_DEADLINE_S,
    )


def run_script(machine: Machine, script: str, *, deadline_s: float) -> None:
    """Run a shell script that has to succeed; raises `HarnessError`."""
    machine.must("sh", "-c", script, deadline_s=deadline_s)
