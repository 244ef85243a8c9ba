"""Whether a VM has its root: a VM that survived the cut, or a VM that boots again from its disk."""

from __future__ import annotations

import time

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import Step
from torture.machines.lab.machine import GuestDied, Machine
from torture.oracles.verdict.boot_verdict import fsck_at_boot
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.recovery import wait_until_idle
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

_DMESG_DEADLINE_S = 60
_HALT_DEADLINE_S = 120
_SOUND_DEADLINE_S = 30
_VM = "vm"
"""The client that wrote has another name, and so has the client that checks and still runs."""
_HALT = ("sh", "-c", "sync; mount -o remount,ro /")
"""A shutdown's treatment of a root; afterwards its power may go."""


def boots(machines: Machines, evidence: EvidenceWriter, nas: Machine, step: Step) -> bool:
    """Start the VM from its disk, keep its console as evidence of `step`, and end it.

    It came up when its agent answers and runs a command from that disk. Raises `HarnessError` when
    the machinery failed: QEMU refuses or is gone, or the NAS does not answer.
    """
    begun = time.monotonic()
    why = ""
    try:
        machine = machines.boot_client_from_disk(step.value, name=_VM)
    except GuestDied as failure:
        if not failure.kernel_crashed:
            raise
        why = "its kernel gave up"
    except DeadlineExceeded as failure:
        why = failure.message
    else:
        why = _run_and_end(evidence, machine)
    if why:
        nas.must("true", deadline_s=_SOUND_DEADLINE_S)
    took_ms = round((time.monotonic() - begun) * 1000)
    _keep(evidence, step, why, root_words=machines.trial.root_words, took_ms=took_ms)
    wait_until_idle(machines.trial.transport, nas)
    return not why


def _run_and_end(evidence: EvidenceWriter, machine: Machine) -> str:
    """Why a VM with an answering agent is not up; empty where it is up. Ends it either way."""
    try:
        log = evidence.observe(machine, Step.BOOT_DMESG, ("dmesg",), deadline_s=_DMESG_DEADLINE_S)
        if log.exit_code != 0:
            return f"its agent answers, and dmesg returns {log.exit_code}"
        evidence.observe(machine, Step.BOOT_HALT, _HALT, deadline_s=_HALT_DEADLINE_S)
    except HarnessError as failure:
        if isinstance(failure, GuestDied) and not failure.kernel_crashed:
            raise
        return f"its agent answered, and then: {failure.message.splitlines()[0]}"
    finally:
        machine.kill()
    return ""


def _keep(evidence: EvidenceWriter, step: Step, why: str, *, root_words: str, took_ms: int) -> None:
    """Keep fsck's output at boot, and the whole console, whether the VM came up or not."""
    console = (evidence.folder / f"{step.value}.console.log").read_text(errors="replace")
    fsck = fsck_at_boot(console)
    if fsck is not None:
        again = step is Step.BOOT_AFTER_REPAIR
        argv = ("fsck", "-a", fsck.device)
        evidence.keep(
            Step.BOOT_FSCK_AFTER_REPAIR if again else Step.BOOT_FSCK,
            Completed(vm=_VM, argv=argv, exit_code=fsck.exit_code, stdout=fsck.said),
        )
    booted = Completed(
        vm=_VM,
        argv=("boot", *root_words.split()),
        exit_code=1 if why else 0,
        stdout=console,
        stderr=why,
        duration_ms=took_ms,
    )
    evidence.keep(step, booted)


def keep_loss_of_root(
    trial: Trial, evidence: EvidenceWriter, loads: Loads, client: Machine, failure: HarnessError
) -> None:
    """Keep as evidence that the client panicked, or runs no command after all its writers failed.

    Raises `failure` in any other case: a client that continues to write has its root, so the
    machinery has failed.
    """
    is_its_own = trial.boots_from_disk and (
        failure.machine is client and failure.kernel_crashed
        if isinstance(failure, GuestDied)
        else loads.are_over
    )
    if not is_its_own:
        raise failure
    try:
        console = client.spec.console_log.read_text(errors="replace")
    except OSError:
        console = ""
    lost = Completed(
        vm=client.name,
        argv=("console",),
        exit_code=1,
        stdout=console,
        stderr=failure.message.splitlines()[0],
    )
    evidence.keep(Step.CLIENT_LOST_ROOT, lost)
