"""A client that lived through the cut and has lost its root: an outcome, like its load's failure."""

from __future__ import annotations

from torture.errors import HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import Step
from torture.machines.lab.machine import GuestDied, Machine
from torture.trials.trial.context import TrialContext


def keep_loss_of_root(context: TrialContext, client: Machine, failure: HarnessError) -> None:
    """Keep as evidence that the client panicked, or runs nothing any more once all its writers failed.

    Raises `failure` where it is something else: a client that goes on writing has its root, and what then
    fails is the machinery.
    """
    is_its_own = context.boots_from_disk and (
        failure.machine is client and failure.kernel_crashed
        if isinstance(failure, GuestDied)
        else context.loads.are_over
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
        duration_ms=0,
    )
    context.keep(Step.CLIENT_LOST_ROOT, lost)
