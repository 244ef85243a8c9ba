"""The command is issued in the NAS while the load runs, and the cut comes at its planned moment.

That it has returned is said on the NAS's console, whose file the host reads: what stands there was said
before the NAS stood still, and a NAS that stands still answers nobody.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from torture.choices.administration.protocol import Administration
from torture.choices.matrix.axes import ADMINISTRATION
from torture.choices.volumes import POOL
from torture.errors import HarnessError
from torture.facts.evidence.administration_document import ADMINISTRATION as DOCUMENT
from torture.facts.evidence.administration_document import AdministrationDocument
from torture.facts.evidence.documents import document_or_none
from torture.facts.evidence.folder import Step, write_document
from torture.facts.evidence.strict_json import strict_json
from torture.machines.lab.machine import Machine
from torture.machines.shelf.control import FreezeOn
from torture.trials.plan.administration_cut import AdministrationCut
from torture.trials.trial.administered.questions import ask, must_be_undone
from torture.trials.trial.context import TrialContext

_EVENT_DEADLINE_S = 20.0
_END_DEADLINE_S = 90.0
_POLL_S = 0.01
_LOAD_POLL_S = 1.0
_CONSOLE = "nas-1.console.log"
_RETURNED = re.compile(r"^torture: administration returned (\d+)\r?$", re.MULTILINE)
_ENDED = re.compile(r"^torture: administration ended\r?$", re.MULTILINE)


def administer(context: TrialContext, nas: Machine, cut: AdministrationCut) -> bool:
    """Issue the cell's command at its moment, and return when the cut has to come.

    True when what the plan waits for came; the shelf has frozen itself then, unless the plan waits for
    the end. Raises `HarnessError` when the command is refused, or was not undone before.
    """
    administration = context.spec.cell[ADMINISTRATION]
    if administration is None:
        raise HarnessError(f"{context.spec.cell.name} has no administration")
    _let_load_run(context)
    ask(context, nas, Step.ADMINISTRATION_BEFORE)
    must_be_undone(context)
    issued_seq = context.shelf.control.status().seq
    nas.agent.start(("sh", "-c", _script_of(administration)))
    hit = _came(context, cut)
    _must_not_be_refused(context)
    said = _returned(context)
    document = AdministrationDocument(
        name=context.spec.cell.axes[ADMINISTRATION.field],
        moment=cut.moment,
        issued_seq=issued_seq,
        returned=said,
    )
    write_document(context.folder, DOCUMENT, document.as_json())
    return hit


def issued_seq_in(context: TrialContext) -> int:
    """The number of the log's last event before the command; 0 where none was issued."""
    file = context.folder / DOCUMENT
    if not file.exists():
        return 0
    document = document_or_none(AdministrationDocument, strict_json(file.read_bytes()))
    return (document and document.issued_seq) or 0


def _let_load_run(context: TrialContext) -> None:
    end = time.monotonic() + context.plan.cut.after_ms / 1000
    while (left_s := end - time.monotonic()) > 0:
        time.sleep(min(left_s, _LOAD_POLL_S))
        context.shelf.require_room()
        context.loads.raise_if_over()


def _script_of(administration: Administration) -> str:
    """What it prints goes to the console, too: the agent may never be asked again."""
    wait = f"zpool wait -t {administration.activity} {POOL}" if administration.activity else ":"
    return (
        "exec > /dev/console 2>&1; "
        f"( set -e; {administration.script} ); code=$?; "
        'echo "torture: administration returned $code"; '
        f"{wait}; echo 'torture: administration ended'"
    )


def _came(context: TrialContext, cut: AdministrationCut) -> bool:
    shelf = context.shelf
    if cut.is_after_end:
        if not _wait_until(
            lambda: bool(_ENDED.search(_console(context))), deadline_s=_END_DEADLINE_S
        ):
            return False
        _must_not_be_refused(context)
    if cut.event is None:
        time.sleep(cut.delay_ms / 1000)
        return True
    trigger = FreezeOn(event=cut.event, role=cut.role, disk=cut.disk, count=cut.count)
    shelf.freeze_on(trigger)
    return _wait_until(lambda: shelf.is_frozen, deadline_s=_EVENT_DEADLINE_S)


def _wait_until(reached: Callable[[], bool], *, deadline_s: float) -> bool:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if reached():
            return True
        time.sleep(_POLL_S)
    return False


def _returned(context: TrialContext) -> int | None:
    found = _RETURNED.search(_console(context))
    return int(found[1]) if found else None


def _must_not_be_refused(context: TrialContext) -> None:
    if code := _returned(context):
        raise HarnessError(
            f"the administration of {context.spec.cell.name} returned {code}",
            hint=f"read {context.folder / _CONSOLE}",
        )


def _console(context: TrialContext) -> str:
    try:
        return (context.folder / _CONSOLE).read_text(errors="replace")
    except OSError:
        return ""
