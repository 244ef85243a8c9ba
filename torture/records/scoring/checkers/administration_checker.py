"""The checker of an administration under way at the cut: done, undone, going on, or a finding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.facts.evidence.folder import AdministrationDocument, Evidence, Step
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.unreadable import answer_of
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.checkers.checker import Earlier, Layer, LayerFinding

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
    states = rounds_of(evidence, Step.ADMINISTRATION_STATE, administration)
    if not states:
        return LayerFinding(layer=Layer.ADMINISTRATION)  # no NAS came back
    ends = rounds_of(evidence, Step.ADMINISTRATION_END, administration)
    answers = [
        answer_of(partial(administration.read, printed)) for printed in (*states, *ends[-1:])
    ]
    outcomes = [outcome for outcome, _ in answers]
    seen, last = outcomes[: len(states)], outcomes[len(states) :]
    verdict, reasons = _judge(evidence, administration, seen, last)
    return LayerFinding(
        layer=Layer.ADMINISTRATION,
        verdict=verdict,
        reasons=reasons,
        unknown=tuple(why for _, whys in answers for why in whys),
        summary=seen[0] or "",
    )


def _judge(
    evidence: Evidence,
    administration: Administration,
    seen: Sequence[Outcome | None],
    ends: Sequence[Outcome | None],
) -> tuple[Verdict | None, tuple[str, ...]]:
    """The finding by each NAS's outcome and by that at the end; None for an unreadable outcome."""
    document = evidence.administration or AdministrationDocument(name="the administration")
    if Outcome.HALF in seen:
        return Verdict.CORRUPTED, (f"{document.name} is half done after the cut",)
    # an earlier cut that confirms a finding may have come before the command returned
    is_known = evidence.is_cut_read and not evidence.cut.confirmed.is_made
    is_acknowledged = is_known and document.returned == 0 and administration.is_durable_by_return
    for outcome in seen:
        if is_acknowledged and outcome in _NOT_DONE:
            why = f"{document.name} is {outcome}, and had returned before the cut"
            return Verdict.ROLLED_BACK, (why,)
    for before, after in pairwise(seen):
        # a running one is seen as done at once, but is on the disks only with the next group
        is_read = before is not None and after is not None
        if is_read and after in _NOT_DONE and _REACHED.index(after) < _REACHED.index(before):
            why = f"{document.name} was {before} after the cut, and is {after} after the next one"
            return Verdict.ROLLED_BACK, (why,)
    expected = seen[-1] if seen[-1] in _NOT_DONE else Outcome.DONE
    for last in ends:
        if None not in (last, seen[-1]) and last is not expected:
            why = f"{document.name} was {seen[-1]} after the cut, and is {last} in the end"
            return Verdict.CORRUPTED, (why,)
    return None, ()


def rounds_of(
    evidence: Evidence, step: Step, administration: Administration
) -> tuple[Printed, ...]:
    """Each round of questions for this step; the last may be short of some. Pure."""
    size = len(administration.questions)
    outputs = [output for output in evidence.tools if output.step == step]
    starts = range(0, len(outputs), size)
    return tuple(Printed(outputs[first : first + size]) for first in starts)
