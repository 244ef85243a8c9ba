"""A client that lived through the cut and has lost its root: an outcome, like its load's failure."""

from __future__ import annotations

from torture.errors import HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import Step
from torture.machines.lab.machine import GuestDied, Machine
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.trial import Trial


def keep_loss_of_root(
    trial: Trial, evidence: EvidenceWriter, loads: Loads, client: Machine, failure: HarnessError
) -> None:
    """Keep as evidence that the client panicked, or runs nothing any more once all its writers failed.

    Raises `failure` where it is something else: a client that goes on writing has its root, and the
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
        duration_ms=0,
    )
    evidence.keep(Step.CLIENT_LOST_ROOT, lost)
