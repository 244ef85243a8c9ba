"""An administration in a trial: its preparation, its command, and its questions after the cut.

The trial issues the command while the load runs. The command prints its return to the NAS's
console, and the host reads the console's file. The console's lines are older than the moment at
which the NAS stands still; the agent then answers no more.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from torture.choices.administration.protocol import Administration, Outcome
from torture.choices.matrix.cells import ADMINISTRATION, Cell
from torture.choices.volumes import POOL
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.facts.evidence.documents import document_or_none, strict_json
from torture.facts.evidence.folder import ADMINISTRATION as DOCUMENT
from torture.facts.evidence.folder import AdministrationDocument, Step, load_evidence
from torture.facts.zfs.versions import ZfsVersion
from torture.machines.lab.machine import Machine
from torture.machines.shelf.control import FreezeOn
from torture.machines.shelf.server import Shelf
from torture.oracles.verdict.guarantee import UnreadableError
from torture.records.scoring.checkers import rounds_of
from torture.trials.plan.trial_plan import AdministrationCut
from torture.trials.trial.loads import Loads
from torture.trials.trial.moment import let_load_run
from torture.trials.trial.shared.machines import Trial
from torture.trials.trial.shared.resident import EvidenceWriter

_EVENT_DEADLINE_S = 20.0
_END_DEADLINE_S = 90.0
_POLL_S = 0.01
_RETURNED = re.compile(r"^torture: administration returned (\d+)\r?$", re.MULTILINE)
_ENDED = re.compile(r"^torture: administration ended\r?$", re.MULTILINE)
_LOOK_DEADLINE_S = 60
_WAIT_DEADLINE_S = 240
"""An operator's patience: without a cut each takes some seconds at most, even under emulation."""
_HISTORY = ("zpool", "history", "-il", POOL)


def preparation_of(cell: Cell) -> str:
    """Shell: prepare the NAS of this cell before a client attaches its volume; may be empty."""
    administration = cell[ADMINISTRATION]
    return "" if administration is None else administration.prepare


def administer(
    trial: Trial,
    shelf: Shelf,
    evidence: EvidenceWriter,
    loads: Loads,
    nas: Machine,
    *,
    zfs: ZfsVersion,
) -> bool:
    """Issue the cell's command at its moment, and return when the cut has to come.

    True when the plan's event came; then the shelf has frozen itself, unless the plan waits for the
    end. Raises `HarnessError` when the NAS refuses the command, or it was done already.
    """
    administration, cut = trial.cell[ADMINISTRATION], trial.plan.administration
    if administration is None or cut is None:
        raise HarnessError(f"{trial.cell.name} has no administration")
    let_load_run(trial.plan.cut, shelf, loads)
    ask(administration, evidence, nas, Step.ADMINISTRATION_BEFORE, zfs=zfs)
    must_be_undone(administration, trial.folder)
    issued_seq = shelf.control.status().seq
    nas.agent.start(("sh", "-c", _script_of(administration)))
    hit = _wait_for_event(trial, shelf, nas, cut)
    document = AdministrationDocument(
        name=trial.cell.axes[ADMINISTRATION.field],
        moment=cut.moment,
        issued_seq=issued_seq,
        returned=_returned(trial, nas),
    )
    evidence.write(DOCUMENT, document.as_json())
    return hit


def issued_seq_in(folder: Path) -> int:
    """The number of the recording's last event before the command; 0 without a command."""
    file = folder / DOCUMENT
    if not file.exists():
        return 0
    document = document_or_none(AdministrationDocument, strict_json(file.read_bytes()))
    return (document and document.issued_seq) or 0


def _script_of(administration: Administration) -> str:
    """The command's script, with its output on the console: the agent may never answer again."""
    wait = f"zpool wait -t {administration.activity} {POOL}" if administration.activity else ":"
    return (
        "exec > /dev/console 2>&1; "
        f"( set -e; {administration.script} ); code=$?; "
        'echo "torture: administration returned $code"; '
        f"{wait}; echo 'torture: administration ended'"
    )


def _wait_for_event(trial: Trial, shelf: Shelf, nas: Machine, cut: AdministrationCut) -> bool:
    """Whether the plan's event comes in time."""
    if cut.is_after_end:
        if not wait_until_true(
            lambda: bool(_ENDED.search(nas.console())), deadline_s=_END_DEADLINE_S, poll_s=_POLL_S
        ):
            return False
        _returned(trial, nas)
    if cut.event is None:
        time.sleep(cut.delay_ms / 1000)
        return True
    shelf.freeze_on(FreezeOn(event=cut.event, role=cut.role, disk=cut.disk, count=cut.count))
    return wait_until_true(lambda: shelf.is_frozen, deadline_s=_EVENT_DEADLINE_S, poll_s=_POLL_S)


def _returned(trial: Trial, nas: Machine) -> int | None:
    """The command's exit code, None before its end; raises `HarnessError` when it was refused."""
    found = _RETURNED.search(nas.console())
    if code := int(found[1]) if found else None:
        raise HarnessError(
            f"the administration of {trial.cell.name} returned {code}",
            hint=f"read {nas.spec.console_log}",
        )
    return code


def ask(
    administration: Administration | None,
    evidence: EvidenceWriter,
    nas: Machine,
    step: Step,
    *,
    zfs: ZfsVersion,
) -> None:
    """Ask the questions of a cell's administration, if any; raises `StorageFailed` at a hang."""
    if administration is None:
        return
    for argv in administration.questions:
        asked = zfs.question(argv)
        evidence.observe_to_end(nas, step, asked, deadline_s=_LOOK_DEADLINE_S)
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


def wait_until_done(
    administration: Administration, evidence: EvidenceWriter, nas: Machine, *, zfs: ZfsVersion
) -> None:
    """Wait until the administration ends, and ask again; raises `StorageFailed` without an end."""
    if administration.activity:
        wait = ("zpool", "wait", "-t", administration.activity, POOL)
        step = Step.ADMINISTRATION_WAIT
        evidence.observe_to_end(nas, step, wait, deadline_s=_WAIT_DEADLINE_S)
    ask(administration, evidence, nas, Step.ADMINISTRATION_END, zfs=zfs)
    if administration.at_end:
        step = Step.ADMINISTRATION_AT_END
        evidence.observe_to_end(nas, step, administration.at_end, deadline_s=_LOOK_DEADLINE_S)
