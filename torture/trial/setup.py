"""The stages before the load: a NAS with a pool and an export, a client with a filesystem on it."""

from __future__ import annotations

from torture.client.filesystems import DEVICE, MOUNT_POINT
from torture.client.load.ledger import LOAD_DIRECTORY
from torture.lab.machine import Machine
from torture.nas import pool
from torture.trial.bench import Bench

_DISKS_DEADLINE_S = 40
_SCRIPT_DEADLINE_S = 60
_MAKE_DEADLINE_S = 120


def set_up_nas(bench: Bench) -> Machine:
    """Disks, pool, zvol, export. Every disk must say it has a write cache, or nothing is tested."""
    cell = bench.spec.cell
    bench.shelf.create()
    bench.shelf.start()
    nas = bench.start_nas(1)
    run_script(nas, pool.wait_for_disks_script(cell.slog), deadline_s=_DISKS_DEADLINE_S)
    run_script(nas, pool.create_script(cell.slog, cell.sync), deadline_s=_SCRIPT_DEADLINE_S)
    publish(bench, nas)
    return nas


def publish(bench: Bench, nas: Machine) -> None:
    """Offer the zvol to the client."""
    run_script(nas, bench.export.publish_script(), deadline_s=_SCRIPT_DEADLINE_S)


def set_up_client(bench: Bench) -> Machine:
    """A filesystem with the load's directory, durable before the load begins."""
    client = bench.start_client("client")
    wait_for_client_disk(client)
    if bench.filesystem.has_files:
        client.must(*bench.filesystem.make(DEVICE), deadline_s=_MAKE_DEADLINE_S)
        client.must(*bench.filesystem.mount(DEVICE, MOUNT_POINT), deadline_s=_SCRIPT_DEADLINE_S)
        run_script(
            client,
            f"mkdir {LOAD_DIRECTORY} && sync -f {MOUNT_POINT}",
            deadline_s=_SCRIPT_DEADLINE_S,
        )
    return client


def settle(nas: Machine) -> None:
    """Put all set-up into the pool for good, so that only the load can be lost at the cut."""
    nas.must("zpool", "sync", pool.POOL, deadline_s=_SCRIPT_DEADLINE_S)


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
