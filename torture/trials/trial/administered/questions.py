"""The answers of ZFS's tools about an administration, before it and after the cut; and its end."""

from __future__ import annotations

from pathlib import Path

from torture.choices.administration.protocol import Administration, Outcome
from torture.choices.volumes import POOL
from torture.errors import HarnessError
from torture.facts.evidence.folder import Step, load_evidence
from torture.machines.lab.machine import Machine
from torture.oracles.verdict.unreadable import UnreadableError
from torture.records.scoring.administered import rounds_of
from torture.trials.trial.shared.evidence_writer import EvidenceWriter

_LOOK_DEADLINE_S = 60
_WAIT_DEADLINE_S = 240
"""An operator's patience: without a cut each takes some seconds at most, under emulation too."""
_HISTORY = ("zpool", "history", "-il", POOL)


def ask(
    administration: Administration | None, evidence: EvidenceWriter, nas: Machine, step: Step
) -> None:
    """Ask the questions of a cell's administration, if it has one; raises `StorageFailed` at a hang."""
    if administration is None:
        return
    for argv in administration.questions:
        evidence.observe_to_end(nas, step, argv, deadline_s=_LOOK_DEADLINE_S)
    if step is Step.ADMINISTRATION_STATE:
        history = Step.ADMINISTRATION_HISTORY
        evidence.observe_to_end(nas, history, _HISTORY, deadline_s=_LOOK_DEADLINE_S)


def must_be_undone(administration: Administration, folder: Path) -> None:
    """Raise `HarnessError` unless the answers before the command show that it was never done."""
    rounds = rounds_of(load_evidence(folder), Step.ADMINISTRATION_BEFORE, administration)
    try:
        outcome = administration.read(rounds[-1])
    except UnreadableError as error:
        raise HarnessError(f"before the administration: {error}") from error
    if outcome is not Outcome.UNDONE:
        raise HarnessError(f"the administration was {outcome} before it was begun")


def wait_until_done(administration: Administration, evidence: EvidenceWriter, nas: Machine) -> None:
    """Wait until the administration ends, and ask again; raises `StorageFailed` when it does not end."""
    if administration.activity:
        wait = ("zpool", "wait", "-t", administration.activity, POOL)
        step = Step.ADMINISTRATION_WAIT
        evidence.observe_to_end(nas, step, wait, deadline_s=_WAIT_DEADLINE_S)
    ask(administration, evidence, nas, Step.ADMINISTRATION_END)
    if administration.at_end:
        step = Step.ADMINISTRATION_AT_END
        evidence.observe_to_end(nas, step, administration.at_end, deadline_s=_LOOK_DEADLINE_S)
