"""What the storage did not do after the cut, told from what the machinery did not do.

A NAS that hangs, panics or will not give its volume back is how a trial can end, and the worse a cut was
the likelier: to call it a failure of the machinery would take the worst cuts out of the rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torture.errors import HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import Step, write_document
from torture.facts.evidence.outage_document import OUTAGE, Outage
from torture.machines.lab.machine import DiskRefused, GuestDied, Machine
from torture.trials.trial.context import TrialContext

PATIENCE_S = 180
"""An operator's: all that is waited for takes 1 to 15 s, under emulation on a loaded host too."""
_SOUND_DEADLINE_S = 30
_LOG_DEADLINE_S = 30
_LOG_LINES = 200
_HUNG_TASKS = "echo w > /proc/sysrq-trigger; sleep 1; dmesg | tail -n {lines}"
"""Has the kernel print the stacks of blocked tasks (Linux Documentation/admin-guide/sysrq.rst)."""


class StorageFailed(HarnessError):
    """The storage did not do what was waited for in `machine`."""

    def __init__(self, message: str, *, machine: Machine) -> None:
        super().__init__(message, hint=f"read {machine.spec.console_log}")
        self.machine = machine


class BrokenOff(HarnessError):
    """The machinery failed after the cut, the disks being well: what was seen by then still holds."""


def storage_must(machine: Machine, otherwise: str, script: str, *, deadline_s: float) -> None:
    """Run a script in a machine; raises `StorageFailed` when it fails or does not end."""
    completed = machine.run("sh", "-c", script, deadline_s=deadline_s)
    if completed.exit_code != 0:
        words = (completed.stderr or completed.stdout).strip().splitlines()
        raise StorageFailed(f"{otherwise}: {' '.join(words[-1:])}", machine=machine)


def must_not_hang(machine: Machine, otherwise: str, script: str, *, deadline_s: float) -> None:
    """Run a script in a machine, which has to succeed; that it does not end is the storage's failure.

    Raises `StorageFailed` then, and `HarnessError` when it fails.
    """
    completed = machine.run("sh", "-c", script, deadline_s=deadline_s)
    if completed.exit_code is None:
        raise StorageFailed(f"{otherwise} for {deadline_s:g} s", machine=machine)
    machine.require_success(completed, deadline_s=deadline_s)


def observe_to_end(
    context: TrialContext, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
) -> Completed:
    """Run a tool and keep what it said; raises `StorageFailed` when it does not end."""
    completed = context.observe(machine, step, argv, deadline_s=deadline_s)
    must_have_ended(machine, step, completed, deadline_s=deadline_s)
    return completed


def must_have_ended(
    machine: Machine, step: Step, completed: Completed, *, deadline_s: float
) -> None:
    """Raise `StorageFailed` for a tool that had to be ended at its deadline."""
    if completed.exit_code is None:
        hung = f"{step}: {completed.tool} hung for {deadline_s:g} s"
        raise StorageFailed(hung, machine=machine)


@contextmanager
def after_the_cut(context: TrialContext) -> Iterator[None]:
    """Keep what the storage did not do as evidence; the trial then ends there, and is judged.

    Raises `BrokenOff` for what may be the machinery's own fault, and `HarnessError` for the shelf's.
    """
    try:
        yield
    except HarnessError as failure:
        if context.shelf.is_started:  # else it was stopped for a cut, and is not what failed
            context.shelf.require_healthy()
        failed = None
        if isinstance(failure, StorageFailed | GuestDied | DiskRefused):
            failed = failure.machine
        if failed is None or not _is_sound(context, failure, failed):
            raise BrokenOff(failure.message, hint=failure.hint) from failure
        outage = Outage(
            stage=next(reversed(context.timings), ""),
            what=failure.message.splitlines()[0],
            machine=_role_of(failed),
            of_nas=failed.name == "nas",
            kernel=_kernel_log(failure, failed),
        )
        write_document(context.folder, OUTAGE, outage.as_json())


def _role_of(machine: Machine) -> str:
    return machine.spec.console_log.name.removesuffix(".console.log")


def _is_sound(context: TrialContext, failure: HarnessError, failed: Machine) -> bool:
    """Whether the machinery does what it should: every machine answers and runs another command.

    A guest whose kernel has died cannot, and says itself what it died of; one that is gone without a word
    was ended by its host.
    """
    for machine in context.machines:
        if isinstance(failure, GuestDied) and machine is failed:
            if not failure.kernel_crashed:
                return False
            continue
        if machine.has_exited_unexpectedly:
            if not machine.has_reported_crash:
                return False
            continue
        if machine is failed and context.boots_from_disk and _role_of(failed) == "client":
            continue  # what it would run is on the storage that fails it
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
