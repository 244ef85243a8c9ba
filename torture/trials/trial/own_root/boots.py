"""Whether the VM boots again: from the disk that the cut left, as its operator would start it."""

from __future__ import annotations

import time

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import Step
from torture.machines.lab.machine import GuestDied, Machine
from torture.oracles.verdict.booted.console import fsck_at_boot
from torture.trials.trial.context import TrialContext
from torture.trials.trial.own_root.install import booted_from_disk, root_words
from torture.trials.trial.recovery import wait_until_idle

_DMESG_DEADLINE_S = 60
_HALT_DEADLINE_S = 120
_SOUND_DEADLINE_S = 30
_VM = "vm"
"""Not the name of the client that wrote, nor of the one that checks, which is there beside it."""
_HALT = ("sh", "-c", "sync; mount -o remount,ro /")
"""What a shutdown does to a root; then its power may go."""


def boots(context: TrialContext, nas: Machine, step: Step) -> bool:
    """Start the VM from its disk, keep what it says as evidence of `step`, and have it end.

    It came up when its agent answers and runs a command from that disk. Raises `HarnessError` when the
    machinery failed: QEMU refuses or is gone, or the NAS does not answer.
    """
    begun = time.monotonic()
    why = ""
    try:
        machine = booted_from_disk(context, step.value, name=_VM)
    except GuestDied as failure:
        if not failure.kernel_crashed:
            raise
        why = "its kernel gave up"
    except DeadlineExceeded as failure:
        why = failure.message
    else:
        why = _run_and_end(context, machine)
    if why:
        nas.must("true", deadline_s=_SOUND_DEADLINE_S)
    took_ms = round((time.monotonic() - begun) * 1000)
    _keep(context, step, why, took_ms)
    wait_until_idle(context, nas)
    return not why


def unplug(context: TrialContext, client: Machine) -> None:
    """Take the NAS's disk from another client, so that nothing of it is cached there."""
    for disk in context.client_disks:
        client.detach(disk)


def plug_in(context: TrialContext, client: Machine) -> None:
    """Give it back."""
    for disk in context.client_disks:
        client.attach(disk)


def _run_and_end(context: TrialContext, machine: Machine) -> str:
    """Why a VM whose agent answers is not up after all; empty where it is. It is ended either way."""
    try:
        log = context.observe(machine, Step.BOOT_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
        if log.exit_code != 0:
            return f"its agent answers, and dmesg returns {log.exit_code}"
        context.observe(machine, Step.BOOT_HALT, _HALT, deadline_s=_HALT_DEADLINE_S)
    except HarnessError as failure:
        if isinstance(failure, GuestDied) and not failure.kernel_crashed:
            raise
        return f"its agent answered, and then: {failure.message.splitlines()[0]}"
    finally:
        machine.kill()
    return ""


def _keep(context: TrialContext, step: Step, why: str, took_ms: int) -> None:
    """What fsck said at boot, and all that stood on the console, whether it came up or not."""
    said = (context.folder / f"{step.value}.console.log").read_text(errors="replace")
    fsck = fsck_at_boot(said)
    if fsck is not None:
        again = step is Step.BOOT_AFTER_REPAIR
        context.keep(
            Step.BOOT_FSCK_AFTER_REPAIR if again else Step.BOOT_FSCK,
            Completed(
                vm=_VM,
                argv=("fsck", "-a", fsck.device),
                exit_code=fsck.exit_code,
                stdout=fsck.said,
                stderr="",
                duration_ms=0,
            ),
        )
    context.keep(
        step,
        Completed(
            vm=_VM,
            argv=("boot", *root_words(context).split()),
            exit_code=1 if why else 0,
            stdout=said,
            stderr=why,
            duration_ms=took_ms,
        ),
    )
