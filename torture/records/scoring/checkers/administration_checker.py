"""The checker of an administration under way at the cut: done, undone, going on, or a finding."""

from __future__ import annotations

from itertools import pairwise

from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.facts.evidence.folder import Evidence, Step
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.checkers.checker import Earlier, Layer, LayerFinding, answer_of

_NOT_DONE = frozenset({Outcome.UNDONE, Outcome.IN_PART})
"""And nothing goes on: an administration that has not begun does not begin."""
_REACHED = (Outcome.UNDONE, Outcome.IN_PART, Outcome.GOING_ON, Outcome.DONE)
"""From no effect to the whole effect."""


def check_administration(
    evidence: Evidence, _terms: Terms, _earlier: Earlier, /, *, administration: Administration
) -> LayerFinding:
    """The pool's verdict by its administration alone; None where nothing is wrong.

    Corrupted when the administration is half done, or does not come to its end as a whole. Rolled
    back when a transaction group of it was on the disks and is gone. Then the command had returned,
    or a pool had been imported with it before another cut. The summary is the outcome in the NAS
    that came back first.
    """
    if evidence.garbled_tools:
        return LayerFinding(layer=Layer.ADMINISTRATION)
    found, unknown = answer_of(lambda: _judge(evidence, administration))
    return found or LayerFinding(layer=Layer.ADMINISTRATION, unknown=unknown)


def _judge(evidence: Evidence, administration: Administration) -> LayerFinding | None:
    """The finding; None where no NAS came back. Raises `UnreadableError`."""
    document = evidence.administration
    if document is None:
        return None
    rounds = rounds_of(evidence, Step.ADMINISTRATION_STATE, administration)
    if not rounds:
        return None
    outcomes = [administration.read(printed) for printed in rounds]
    first = outcomes[0]
    if Outcome.HALF in outcomes:
        return _found(first, Verdict.CORRUPTED, f"{document.name} is half done after the cut")
    # an earlier cut that confirms a finding may have come before the command returned
    is_known = evidence.is_cut_read and not evidence.cut.confirmed.is_made
    is_acknowledged = is_known and document.returned == 0 and administration.is_durable_by_return
    for outcome in outcomes:
        if is_acknowledged and outcome in _NOT_DONE:
            why = f"{document.name} is {outcome}, and had returned before the cut"
            return _found(first, Verdict.ROLLED_BACK, why)
    for before, after in pairwise(outcomes):
        # a running one is seen as done at once, but is on the disks only with the next group
        if after in _NOT_DONE and _REACHED.index(after) < _REACHED.index(before):
            why = f"{document.name} was {before} after the cut, and is {after} after the next one"
            return _found(first, Verdict.ROLLED_BACK, why)
    ends = rounds_of(evidence, Step.ADMINISTRATION_END, administration)
    expected = outcomes[-1] if outcomes[-1] in _NOT_DONE else Outcome.DONE
    for end in ends[-1:]:
        if (last := administration.read(end)) is not expected:
            why = f"{document.name} was {outcomes[-1]} after the cut, and is {last} in the end"
            return _found(first, Verdict.CORRUPTED, why)
    return LayerFinding(layer=Layer.ADMINISTRATION, summary=first)


def rounds_of(
    evidence: Evidence, step: Step, administration: Administration
) -> tuple[Printed, ...]:
    """Each round of questions for this step; the last may be short of some. Pure."""
    size = len(administration.questions)
    outputs = [output for output in evidence.tools if output.step == step]
    starts = range(0, len(outputs), size)
    return tuple(Printed(outputs[first : first + size]) for first in starts)


def _found(outcome: Outcome, verdict: Verdict, reason: str) -> LayerFinding:
    return LayerFinding(
        layer=Layer.ADMINISTRATION, verdict=verdict, reasons=(reason,), summary=outcome
    )
