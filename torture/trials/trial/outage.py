"""A failure after the cut or an interruption: a storage failure ends the trial with an outage.

A failure of the machinery breaks the trial off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torture.errors import HarnessError
from torture.facts.evidence.folder import OUTAGE, Outage
from torture.machines.lab.machine import GuestDied, Machine, MachineFailed
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines

_SOUND_DEADLINE_S = 30
_LOG_DEADLINE_S = 30
_LOG_LINES = 200
_HUNG_TASKS = "echo w > /proc/sysrq-trigger; sleep 1; dmesg | tail -n {lines}"
"""Makes the kernel print the stacks of blocked tasks (Linux Documentation/admin-guide/sysrq.rst)."""


class BrokenOff(HarnessError):
    """The machinery failed with sound disks: the evidence so far still holds."""


@contextmanager
def keep_outage(machines: Machines, evidence: EvidenceWriter) -> Iterator[None]:
    """Keep a failure of the storage as evidence; the trial ends there, and the oracles judge it.

    Raises `BrokenOff` for a failure that may be the machinery's own. Raises `HarnessError` for a
    failure of the shelf.
    """
    try:
        yield
    except HarnessError as failure:
        if machines.shelf.is_started:  # else a cut stopped it, and it has not failed
            machines.shelf.require_healthy()
        failed = failure.machine if isinstance(failure, MachineFailed) else None
        if failed is None or not _is_sound(machines, failure, failed):
            raise BrokenOff(failure.message, hint=failure.hint) from failure
        outage = Outage(
            stage=next(reversed(evidence.timings), ""),
            what=failure.message.splitlines()[0],
            machine=_role_of(failed),
            of_nas=failed.name == "nas",
            kernel=_kernel_log(failure, failed),
        )
        evidence.write(OUTAGE, outage.as_json())


def _role_of(machine: Machine) -> str:
    return machine.spec.console_log.name.removesuffix(".console.log")


def _is_sound(machines: Machines, failure: HarnessError, failed: Machine) -> bool:
    """Whether the machinery works: every machine answers and runs another command.

    A guest with a dead kernel does neither, and its console has the reason. The host ended a guest
    that is gone without a reason, even one that never came up.
    """
    try:
        machines.lab.require_host()
    except HarnessError:
        return False
    if isinstance(failure, GuestDied) and not failure.kernel_crashed:
        return False
    for machine in machines.all:
        if (isinstance(failure, GuestDied) and machine is failed) or (
            machine.has_exited_unexpectedly
        ):
            continue  # its kernel crashed
        if machine is failed and machines.trial.boots_from_disk and _role_of(failed) == "client":
            continue  # its programs are on the storage that failed
        try:
            if machine.is_alive():
                machine.must("true", deadline_s=_SOUND_DEADLINE_S)
        except HarnessError:
            return False
    return True


def _kernel_log(failure: HarnessError, failed: Machine) -> tuple[str, ...]:
    if isinstance(failure, GuestDied):
        return tuple(failure.message.splitlines()[1:])
    script = _HUNG_TASKS.format(lines=_LOG_LINES)
    try:
        return tuple(failed.run("sh", "-c", script, deadline_s=_LOG_DEADLINE_S).stdout.splitlines())
    except HarnessError as error:
        return (f"its kernel log could not be read: {error}",)
