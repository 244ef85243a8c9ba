"""The stage that looks: a fresh client mounts, reads everything back, checks, and tries a repair."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.workloads.protocol import Workload
from torture.errors import HarnessError
from torture.facts.evidence.folder import Step, write_document
from torture.machines.lab.machine import Machine
from torture.trials.trial.context import TrialContext
from torture.trials.trial.outage import PATIENCE_S, StorageFailed, must_have_ended, observe_to_end
from torture.trials.trial.own_root.boots import plug_in, unplug
from torture.trials.trial.setup import attach_again, plant

DocumentOf = Callable[[Workload], str]
"""Which of a load's documents a read-back becomes."""

_MOUNT_DEADLINE_S = 300
_UMOUNT_DEADLINE_S = 120
_CHECK_DEADLINE_S = 300
READ_DEADLINE_S = 300
"""An operator's patience: none takes more than some seconds, under emulation too."""
REPAIR_DEADLINE_S = 1500
"""btrfs takes each entry whose inode it misses out of its folder in a transaction of its own: 5,153 in
226 s, on two processors that a dozen machines had to share."""
_REPAIRS_MAX = 3
"""One run of btrfs's may leave an error of 5,906, and say nothing of it."""
_DMESG_DEADLINE_S = 20
_REMARKABLE = re.compile(r"error|warn|corrupt|fail|bug:|oops|call trace|blocked for", re.IGNORECASE)
"""In the kernel's log of a client: after that it is not as good as new."""
_REFUSED = 2
"""What xfs_repair returns when the log should be replayed first (xfs_repair(8))."""


def check(context: TrialContext, vm_boots: Callable[[Step], bool] | None = None) -> None:
    """Gather everything the verdict needs. A client that was not there at the cut has cached nothing.

    `vm_boots`: where a client's root is on the disk, boot it from there, as this step. That is done after
    the first look, and once more after all else when something was wrong.
    """
    client = context.checker()
    attach_again(context, client, deadline_s=PATIENCE_S)
    is_sound = True
    if context.attachment.device is not None and context.filesystem.has_files:
        if context.fault is not None:
            plant(client, context.fault.before_mount.replace("{device}", context.device))
        is_sound = _look_first(context, client)
        if vm_boots is not None:
            unplug(context, client)
            is_sound = vm_boots(Step.BOOT) and is_sound
            plug_in(context, client)
            attach_again(context, client, deadline_s=PATIENCE_S)
        mounted = _mount_read_umount(context, client, Step.FS_MOUNT, Step.FS_UMOUNT, _before_repair)
        checker = context.filesystem.check(context.device)
        clean = _is_clean(context, client, Step.FS_CHECK, checker)
        is_sound = is_sound and mounted and clean
        if not (mounted and clean):
            _repair(context, client)
    else:
        _read_back(context, client, _before_repair)
    log = context.observe(client, Step.CHECK_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
    if is_sound and _REMARKABLE.search(log.stdout) is None:
        context.give_checker_back(client)
    elif vm_boots is not None and not is_sound:
        unplug(context, client)
        vm_boots(Step.BOOT_AFTER_REPAIR)


def _look_first(context: TrialContext, client: Machine) -> bool:
    """Whether nothing is found before a mount writes: what it mends on its way nobody would hear of."""
    argv = context.filesystem.first_check(context.device)
    if argv is None:
        return True
    return _is_clean(context, client, Step.FS_FIRST_CHECK, argv)


def _repair(context: TrialContext, client: Machine) -> None:
    """Mend and look again, as an operator would, who tries more than once.

    What it writes stays on the host where QEMU gives the disk: thousands of small transactions take 226 s
    so, and 967 s by way of the NAS. A VM that boots from its disk has to find it mended there.
    """
    if not context.boots_from_disk:
        for disk in context.client_disks:
            client.divert_writes(disk, into=context.scratch / f"{disk.target}.repaired")
    end = time.monotonic() + REPAIR_DEADLINE_S
    for _ in range(_REPAIRS_MAX):
        begun = time.monotonic()
        _run_repair(context, client, end=end)
        took_s = time.monotonic() - begun
        # one that is given up would take what the one before left out of the evidence
        if _looks_mended(context, client) or end - time.monotonic() < took_s:
            return


def _run_repair(context: TrialContext, client: Machine, *, end: float) -> None:
    """Run it, until then at the most."""
    for repair in context.filesystem.repairs(context.device):
        tried = client.run_verbose(*repair, deadline_s=end - time.monotonic())
        context.keep(Step.FS_REPAIR, tried)
        if tried.exit_code != _REFUSED:
            break


def _looks_mended(context: TrialContext, client: Machine) -> bool:
    mounted = _mount_read_umount(
        context,
        client,
        Step.FS_MOUNT_AFTER_REPAIR,
        Step.FS_UMOUNT_AFTER_REPAIR,
        _after_repair,
    )
    checker = context.filesystem.check(context.device)
    return mounted and _is_clean(context, client, Step.FS_CHECK_AFTER_REPAIR, checker)


def _mount_read_umount(
    context: TrialContext,
    client: Machine,
    mount_step: Step,
    umount_step: Step,
    document_of: DocumentOf,
) -> bool:
    """Whether it could be mounted; then everything on it was read back."""
    mount = context.filesystem.mount(context.device, MOUNT_POINT)
    mounted = observe_to_end(context, client, mount_step, mount, deadline_s=_MOUNT_DEADLINE_S)
    if mounted.exit_code != 0:
        return False
    if context.fault is not None and mount_step is Step.FS_MOUNT:
        plant(client, context.fault.before_read_back)
    scrub = context.filesystem.scrub(MOUNT_POINT)
    if scrub is not None and mount_step is Step.FS_MOUNT:
        observe_to_end(context, client, Step.FS_SCRUB, scrub, deadline_s=_CHECK_DEADLINE_S)
    _read_back(context, client, document_of)
    umount = ("umount", MOUNT_POINT)
    observe_to_end(context, client, umount_step, umount, deadline_s=_UMOUNT_DEADLINE_S)
    return True


def _is_clean(context: TrialContext, client: Machine, step: Step, checker: tuple[str, ...]) -> bool:
    """What a checker says is kept, which may be a line for each inode."""
    checked = client.run_verbose(*checker, deadline_s=_CHECK_DEADLINE_S)
    context.keep(step, checked)
    must_have_ended(client, step, checked, deadline_s=_CHECK_DEADLINE_S)
    return checked.exit_code == 0


def _read_back(context: TrialContext, client: Machine, document_of: DocumentOf) -> None:
    """Read back what each load wrote, into a document of its own."""
    jobs = context.jobs
    for workload in context.workloads:
        command = workload.read_back(jobs[workload.name])
        completed = client.run(*command, deadline_s=READ_DEADLINE_S)
        if completed.exit_code is None:
            raise StorageFailed(
                f"the read-back of {workload.name} hung for {READ_DEADLINE_S} s", machine=client
            )
        if completed.exit_code != 0:
            raise HarnessError(
                f"the read-back of {workload.name} in {client.name} returned "
                f"{completed.exit_code}: {completed.stderr}",
                hint=f"read {client.spec.console_log}",
            )
        write_document(context.folder, document_of(workload), completed.stdout)


def _before_repair(workload: Workload) -> str:
    return workload.readback


def _after_repair(workload: Workload) -> str:
    return workload.readback_after_repair
