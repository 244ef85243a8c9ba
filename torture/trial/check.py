"""The stage that looks: a fresh client mounts, reads everything back, checks, and tries a repair."""

from __future__ import annotations

from torture.errors import HarnessError
from torture.evidence.folder import READBACK, READBACK_AFTER_REPAIR, Step, write_document
from torture.filesystems import DEVICE, MOUNT_POINT
from torture.lab.machine import Machine
from torture.trial.context import TrialContext
from torture.trial.setup import wait_for_client_disk
from torture.workloads.ledger import guest_command, job_of

_MOUNT_DEADLINE_S = 120
_UMOUNT_DEADLINE_S = 60
_CHECK_DEADLINE_S = 180
_READ_DEADLINE_S = 120
_DMESG_DEADLINE_S = 20
_REFUSED = 2
"""What xfs_repair returns when the log should be replayed first (xfs_repair(8))."""


def check(context: TrialContext) -> None:
    """Gather everything the verdict needs. A client that was not there at the cut has cached nothing."""
    client = context.start_client("checker")
    wait_for_client_disk(client)
    if context.filesystem.has_files:
        mounted = _mount_read_umount(context, client, Step.FS_MOUNT, Step.FS_UMOUNT, READBACK)
        clean = _is_clean(context, client, Step.FS_CHECK)
        if not (mounted and clean):
            _repair(context, client)
    else:
        _read_back(context, client, READBACK)
    context.observe(client, Step.CHECK_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)


def _repair(context: TrialContext, client: Machine) -> None:
    """Mend and look again, as an operator would."""
    for repair in context.filesystem.repairs(DEVICE):
        tried = context.observe(client, Step.FS_REPAIR, repair, deadline_s=_CHECK_DEADLINE_S)
        if tried.exit_code != _REFUSED:
            break
    if _mount_read_umount(
        context,
        client,
        Step.FS_MOUNT_AFTER_REPAIR,
        Step.FS_UMOUNT_AFTER_REPAIR,
        READBACK_AFTER_REPAIR,
    ):
        _is_clean(context, client, Step.FS_CHECK_AFTER_REPAIR)


def _mount_read_umount(
    context: TrialContext, client: Machine, mount_step: Step, umount_step: Step, document: str
) -> bool:
    """Whether it could be mounted; then everything on it was read into `document`."""
    mount = context.filesystem.mount(DEVICE, MOUNT_POINT)
    mounted = context.observe(client, mount_step, mount, deadline_s=_MOUNT_DEADLINE_S)
    if mounted.exit_code != 0:
        return False
    _read_back(context, client, document)
    umount = ("umount", MOUNT_POINT)
    context.observe(client, umount_step, umount, deadline_s=_UMOUNT_DEADLINE_S)
    return True


def _is_clean(context: TrialContext, client: Machine, step: Step) -> bool:
    argv = context.filesystem.check(DEVICE)
    return context.observe(client, step, argv, deadline_s=_CHECK_DEADLINE_S).exit_code == 0


def _read_back(context: TrialContext, client: Machine, document: str) -> None:
    completed = client.run(
        *guest_command("read", job_of(context.spec)), deadline_s=_READ_DEADLINE_S
    )
    if completed.exit_code != 0:
        raise HarnessError(
            f"the read-back in {client.name} returned {completed.exit_code}: {completed.stderr}",
            hint=f"read {client.spec.console_log}",
        )
    write_document(context.folder, document, completed.stdout)
