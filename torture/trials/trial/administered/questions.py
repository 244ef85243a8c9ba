"""What ZFS's tools say of an administration, before it and after the cut; and waiting for its end."""

from __future__ import annotations

from torture.choices.administration.protocol import Outcome
from torture.choices.matrix.axes import ADMINISTRATION
from torture.choices.volumes import POOL
from torture.errors import HarnessError
from torture.facts.evidence.folder import Step, load_evidence
from torture.machines.lab.machine import Machine
from torture.oracles.verdict.unreadable import UnreadableError
from torture.records.scoring.checkers.administration_checker import rounds_of
from torture.trials.trial.context import TrialContext
from torture.trials.trial.outage import observe_to_end

_LOOK_DEADLINE_S = 60
_WAIT_DEADLINE_S = 240
"""An operator's patience: without a cut none takes more than some seconds, under emulation too."""
_HISTORY = ("zpool", "history", "-il", POOL)


def ask(context: TrialContext, nas: Machine, step: Step) -> None:
    """Ask what the cell's administration is told by, if it has one; raises `StorageFailed` at a hang."""
    administration = context.spec.cell[ADMINISTRATION]
    if administration is None:
        return
    for argv in administration.questions:
        observe_to_end(context, nas, step, argv, deadline_s=_LOOK_DEADLINE_S)
    if step is Step.ADMINISTRATION_STATE:
        history = Step.ADMINISTRATION_HISTORY
        observe_to_end(context, nas, history, _HISTORY, deadline_s=_LOOK_DEADLINE_S)


def must_be_undone(context: TrialContext) -> None:
    """Raise `HarnessError` unless the answers before the command say that it was never done."""
    administration = context.spec.cell[ADMINISTRATION]
    if administration is None:
        return
    evidence = load_evidence(context.folder)
    rounds = rounds_of(evidence, Step.ADMINISTRATION_BEFORE, administration)
    try:
        outcome = administration.read(rounds[-1])
    except UnreadableError as error:
        raise HarnessError(f"before the administration: {error}") from error
    if outcome is not Outcome.UNDONE:
        raise HarnessError(f"the administration was {outcome} before it was begun")


def wait_until_done(context: TrialContext, nas: Machine) -> None:
    """Let what goes on come to its end, and ask again; raises `StorageFailed` when it does not end."""
    administration = context.spec.cell[ADMINISTRATION]
    if administration is None:
        return
    if administration.activity:
        wait = ("zpool", "wait", "-t", administration.activity, POOL)
        step = Step.ADMINISTRATION_WAIT
        observe_to_end(context, nas, step, wait, deadline_s=_WAIT_DEADLINE_S)
    ask(context, nas, Step.ADMINISTRATION_END)
    if administration.at_end:
        step = Step.ADMINISTRATION_AT_END
        observe_to_end(context, nas, step, administration.at_end, deadline_s=_LOOK_DEADLINE_S)
