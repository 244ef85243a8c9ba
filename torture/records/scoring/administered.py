"""What became of an administration that the power was cut under: done, undone, going on, or a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.matrix.axes import ADMINISTRATION
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import Evidence, Step
from torture.oracles.verdict.unreadable import UnreadableError
from torture.oracles.verdict.verdicts import Verdict

_NOT_DONE = frozenset({Outcome.UNDONE, Outcome.IN_PART})
"""And nothing goes on: what is not begun stays so."""
_REACHED = (Outcome.UNDONE, Outcome.IN_PART, Outcome.GOING_ON, Outcome.DONE)
"""From nothing of it to all of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdministrationFinding:
    """`verdict` is one of the pool's: intact, unless `reasons` say what is wrong.

    Corrupted when it is half done, or does not come to its end as a whole. Rolled back when the command
    had returned, or a pool had been imported with it before another cut, and so its transaction groups
    were on the disks, and they are not all there.
    """

    outcome: Outcome
    """In the NAS that came back first."""
    verdict: Verdict = Verdict.INTACT
    reasons: tuple[str, ...] = ()


def judge_administration(evidence: Evidence) -> AdministrationFinding | None:
    """The finding; None where nothing was administered, or no NAS came back that could be asked.

    Raises `UnreadableError` when what was printed does not tell.
    """
    document = evidence.administration
    administration = _administration_in(evidence)
    if document is None or administration is None:
        return None
    rounds = rounds_of(evidence, Step.ADMINISTRATION_STATE, administration)
    if not rounds:
        return None
    outcomes = [administration.read(printed) for printed in rounds]
    first = outcomes[0]
    if Outcome.HALF in outcomes:
        return _found(first, Verdict.CORRUPTED, f"{document.name} is half done after the cut")
    # of an earlier cut, that confirms a finding, nobody knows whether the command had returned by then
    is_known = evidence.is_cut_read and not evidence.cut.confirmed.is_made
    is_acknowledged = is_known and document.returned == 0 and administration.is_durable_by_return
    for outcome in outcomes:
        if is_acknowledged and outcome in _NOT_DONE:
            why = f"{document.name} is {outcome}, and had returned before the cut"
            return _found(first, Verdict.ROLLED_BACK, why)
    for before, after in pairwise(outcomes):
        # what goes on is seen to be done as soon as it is, and on the disks with the next group only
        if after in _NOT_DONE and _REACHED.index(after) < _REACHED.index(before):
            why = f"{document.name} was {before} after the cut, and is {after} after the next one"
            return _found(first, Verdict.ROLLED_BACK, why)
    ends = rounds_of(evidence, Step.ADMINISTRATION_END, administration)
    expected = outcomes[-1] if outcomes[-1] in _NOT_DONE else Outcome.DONE
    for end in ends[-1:]:
        if (last := administration.read(end)) is not expected:
            why = f"{document.name} was {outcomes[-1]} after the cut, and is {last} in the end"
            return _found(first, Verdict.CORRUPTED, why)
    return AdministrationFinding(outcome=first)


def rounds_of(
    evidence: Evidence, step: Step, administration: Administration
) -> tuple[Printed, ...]:
    """Each round of questions for this step; the last may be short of some. Pure."""
    size = len(administration.questions)
    outputs = [output for output in evidence.tools if output.step == step]
    rounds: Sequence[Printed] = [
        Printed(outputs[first : first + size]) for first in range(0, len(outputs), size)
    ]
    return tuple(rounds)


def _administration_in(evidence: Evidence) -> Administration | None:
    try:
        return Cell.parse(str(evidence.spec.get("cell")))[ADMINISTRATION]
    except ValueError as error:
        raise UnreadableError(str(error)) from error


def _found(outcome: Outcome, verdict: Verdict, reason: str) -> AdministrationFinding:
    return AdministrationFinding(outcome=outcome, verdict=verdict, reasons=(reason,))
