"""Commands that need the storage: a command that hangs or is refused is the storage's failure.

A trial can end with a NAS that hangs, panics or does not return its volume. A worse cut makes this
end likelier. As a failure of the machinery, it would remove the worst cuts from the rates.
"""

from __future__ import annotations

from torture.facts.evidence.completed_command import Completed
from torture.facts.evidence.folder import Step
from torture.machines.lab.machine import Machine, MachineFailed

PATIENCE_S = 180
"""An operator's patience: every wait takes 1 to 15 s, even under emulation on a loaded host."""


class StorageFailed(MachineFailed):
    """The storage did not do its part for a command in `machine`."""


def storage_must(machine: Machine, failure: str, script: str, *, deadline_s: float) -> None:
    """Run a script in a machine; raises `StorageFailed` when it fails or does not end."""
    completed = machine.run("sh", "-c", script, deadline_s=deadline_s)
    if completed.exit_code != 0:
        words = (completed.stderr or completed.stdout).strip().splitlines()
        raise StorageFailed(f"{failure}: {' '.join(words[-1:])}", machine=machine)


def must_not_hang(machine: Machine, failure: str, script: str, *, deadline_s: float) -> None:
    """Run a script in a machine.

    Raises `StorageFailed` when it does not end, and `HarnessError` when it fails.
    """
    completed = machine.run("sh", "-c", script, deadline_s=deadline_s)
    if completed.exit_code is None:
        raise StorageFailed(f"{failure} for {deadline_s:g} s", machine=machine)
    machine.require_success(completed, deadline_s=deadline_s)


def must_have_ended(
    machine: Machine, step: Step, completed: Completed, *, deadline_s: float
) -> None:
    """Raise `StorageFailed` for a tool that the deadline ended."""
    if completed.exit_code is None:
        hung = f"{step}: {completed.tool} hung for {deadline_s:g} s"
        raise StorageFailed(hung, machine=machine)
