"""The last stages of every trial: a fresh client mounts, reads back, checks and repairs.

ZFS scrubs the pool.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import ADMINISTRATION
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import CHECK_STATE, Completed, Step
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.model import keep_all
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.machines.nas.settings import has_heartbeat
from torture.trials.trial.administer import wait_until_done
from torture.trials.trial.cut import keep_later_life
from torture.trials.trial.own_root import boots
from torture.trials.trial.recovery import scrub
from torture.trials.trial.setup import attach_again, plant
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import (
    PATIENCE_S,
    EvidenceWriter,
    StorageFailed,
    must_have_ended,
    storage_must,
)

_SYNC_DEADLINE_S = 120
_MOUNT_DEADLINE_S = 300
_UMOUNT_DEADLINE_S = 120
_CHECK_DEADLINE_S = 300
READ_DEADLINE_S = 300
"""An operator's patience: each read-back takes some seconds at most, even under emulation."""
REPAIR_DEADLINE_S = 1500
"""btrfs removes each entry without an inode from its folder in a transaction of its own: 5,153 in
226 s. A dozen machines shared two processors then."""
_REPAIRS_MAX = 3
"""One run of btrfs's repair may leave one error of 5,906, and not report it."""
_DMESG_DEADLINE_S = 20
_REMARKABLE = re.compile(r"error|warn|corrupt|fail|bug:|oops|call trace|blocked for", re.IGNORECASE)
"""A line of a client's kernel log, after which the client is not as good as new."""
_REFUSED = 2
"""The exit code of xfs_repair when a mount should replay the log first (xfs_repair(8))."""


class ReadBack(Protocol):
    """Runs a command that reads back, as `Machine.run` does."""

    def __call__(self, *argv: str, deadline_s: float) -> Completed:
        """Run it, until the deadline."""


def inspect(
    trial: Trial,
    machines: Machines,
    evidence: EvidenceWriter,
    nas: Machine,
    *,
    cut: CutDocument | None,
) -> None:
    """Check, audit the NAS since its return, and scrub.

    The disks before the check become a crash state of their own. A repair in place leaves this
    state whole, so it can be inspected again. `cut`: None where it was recorded earlier, on a NAS with
    other settings; then there is nothing to audit.
    """
    shelf, administration = machines.shelf, trial.cell[ADMINISTRATION]
    if administration is not None:
        with evidence.stage("wait for administration"):
            wait_until_done(administration, evidence, nas, zfs=machines.lab.zfs)
    with evidence.stage("check"):
        evidence.observe_to_end(nas, Step.POOL_SYNC, pool.SYNC, deadline_s=_SYNC_DEADLINE_S)
        before = shelf.control.status().seq
        state = keep_all(shelf.recording, cut=before, disks=trial.disks_left)
        write_crash_state(shelf.directory / CHECK_STATE, state)
        vm_boots = partial(boots, machines, evidence, nas) if trial.boots_from_disk else None
        client = machines.checker()
        if check(trial, evidence, client, vm_boots):
            machines.give_checker_back(client)
    if cut is not None:
        with evidence.stage("audit"):
            keep_later_life(trial, machines, evidence, cut, nas)
    with evidence.stage("scrub"):
        if has_heartbeat(trial.cell):
            failure = "the pool keeps its heartbeat"
            storage_must(nas, failure, pool.END_HEARTBEAT, deadline_s=_SYNC_DEADLINE_S)
        scrub(evidence, nas, shelf=shelf, zfs=machines.lab.zfs)


def check(
    trial: Trial,
    evidence: EvidenceWriter,
    client: Machine,
    vm_boots: Callable[[Step], bool] | None = None,
    read_back: ReadBack | None = None,
) -> bool:
    """Gather everything the verdict needs; True when the client is as good as new without its disk.

    The client did not exist at the cut, so it has cached nothing. `vm_boots` boots a client whose
    root is on the disk from there, as this step. It does so after the first look. When an error
    was found, it does so once more at the end. `read_back` runs a read-back quicker than the client.
    """
    if not attach_again(trial, client, evidence, deadline_s=PATIENCE_S):
        evidence.observe(client, Step.CHECK_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
        return False
    is_sound = True
    if trial.has_own_filesystem:
        if trial.fault is not None:
            _plant_on_disk(trial, client, trial.fault.before_mount)
        # before the mount, which writes to the filesystem and silently mends it
        first = trial.filesystem.first_check
        if first is not None:
            is_sound = _is_clean(evidence, client, Step.FS_FIRST_CHECK, first)
        if vm_boots is not None:
            for disk in trial.client_disks:
                client.detach(disk)  # so that this client caches nothing of it
            is_sound = vm_boots(Step.BOOT) and is_sound
            for disk in trial.client_disks:
                client.attach(disk)
            attach_again(trial, client, evidence, deadline_s=PATIENCE_S)
        mounted = _mount_read_umount(trial, evidence, client, read_back=read_back or client.run)
        checker = trial.filesystem.check
        clean = _is_clean(evidence, client, Step.FS_CHECK, checker)
        is_sound = is_sound and mounted and clean
        if not (mounted and clean):
            _repair(trial, evidence, client)
    else:
        if trial.fault is not None:
            _plant_on_disk(trial, client, trial.fault.before_read_back)
        _read_back(trial, evidence, client, read_back=read_back or client.run)
    log = evidence.observe(client, Step.CHECK_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
    if vm_boots is not None and not is_sound:
        for disk in trial.client_disks:
            client.detach(disk)
        vm_boots(Step.BOOT_AFTER_REPAIR)
    return is_sound and _REMARKABLE.search(log.stdout) is None


def _plant_on_disk(trial: Trial, client: Machine, script: str) -> None:
    """Run a fault's script; `{device}` in it is the client's disk. Without a disk no script names it."""
    plant(client, script.replace("{device}", trial.attachment.device or ""))


def _repair(trial: Trial, evidence: EvidenceWriter, client: Machine) -> None:
    """Mend and look again, as an operator does, who tries more than once.

    Where QEMU attaches the disk, the repair's writes stay on the host. Thousands of small
    transactions then take 226 s; over the NAS they take 967 s. A VM that boots from its disk needs
    the repair on that disk.
    """
    if not trial.boots_from_disk:
        for disk in trial.client_disks:
            client.divert_writes(disk, into=trial.scratch / f"{disk.target}.repaired")
    checker = trial.filesystem.check
    end = time.monotonic() + REPAIR_DEADLINE_S
    for _ in range(_REPAIRS_MAX):
        begun = time.monotonic()
        for repair in trial.filesystem.repairs:
            tried = client.run_verbose(*repair, deadline_s=end - time.monotonic())
            evidence.keep(Step.FS_REPAIR, tried)
            if tried.exit_code != _REFUSED:
                break
        took_s = time.monotonic() - begun
        mounted = _mount_read_umount(
            trial, evidence, client, read_back=client.run, after_repair=True
        )
        if mounted and _is_clean(evidence, client, Step.FS_CHECK_AFTER_REPAIR, checker):
            return
        if end - time.monotonic() < took_s:
            return  # an abandoned repair would remove the evidence of the one before


def _mount_read_umount(
    trial: Trial,
    evidence: EvidenceWriter,
    client: Machine,
    *,
    read_back: ReadBack,
    after_repair: bool = False,
) -> bool:
    """Whether the disk could be mounted; if so, the client read back everything on it."""
    mount_step = Step.FS_MOUNT_AFTER_REPAIR if after_repair else Step.FS_MOUNT
    umount_step = Step.FS_UMOUNT_AFTER_REPAIR if after_repair else Step.FS_UMOUNT
    filesystem = trial.filesystem
    mounted = evidence.observe_to_end(
        client, mount_step, filesystem.mount, deadline_s=_MOUNT_DEADLINE_S
    )
    if mounted.exit_code != 0:
        return False
    if trial.fault is not None and not after_repair:
        _plant_on_disk(trial, client, trial.fault.before_read_back)
    if filesystem.scrub is not None and not after_repair:
        evidence.observe_to_end(
            client, Step.FS_SCRUB, filesystem.scrub, deadline_s=_CHECK_DEADLINE_S
        )
    _read_back(trial, evidence, client, read_back=read_back, after_repair=after_repair)
    umount = ("umount", MOUNT_POINT)
    evidence.observe_to_end(client, umount_step, umount, deadline_s=_UMOUNT_DEADLINE_S)
    return True


def _is_clean(
    evidence: EvidenceWriter, client: Machine, step: Step, checker: tuple[str, ...]
) -> bool:
    """Whether a checker finds nothing; its output may be a line for each inode."""
    checked = client.run_verbose(*checker, deadline_s=_CHECK_DEADLINE_S)
    evidence.keep(step, checked)
    must_have_ended(client, step, checked, deadline_s=_CHECK_DEADLINE_S)
    return checked.exit_code == 0


def _read_back(
    trial: Trial,
    evidence: EvidenceWriter,
    client: Machine,
    *,
    read_back: ReadBack,
    after_repair: bool = False,
) -> None:
    """Read back the data of each load, into a document of its own."""
    jobs = trial.jobs
    for workload in trial.workloads:
        command = workload.read_back(jobs[workload.name])
        completed = read_back(*command, deadline_s=READ_DEADLINE_S)
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
        document = workload.readback_after_repair if after_repair else workload.readback
        evidence.write(document, completed.stdout)
