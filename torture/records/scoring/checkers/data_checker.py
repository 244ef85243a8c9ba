"""The checker of the acknowledged data: each load alone, and then all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from torture.choices.workloads.protocol import Workload
from torture.facts.evidence.folder import Evidence, Step
from torture.oracles.verdict.guarantee import Terms, Verdict, answer_of, worst_or_none
from torture.oracles.verdict.judgement import UNJUDGED, Findings, together
from torture.oracles.verdict.mount import read_kernel_log
from torture.oracles.verdict.repeated_requests import creations_that_met_their_file, whole_ledger
from torture.records.scoring.checkers.checker import Earlier, Layer, LayerFinding
from torture.records.scoring.service import failed_writers

Loads = Sequence[Workload]
_COMPLAINTS_MAX = 3
_TORN_SECTOR = (
    "with a part of one sector of a write under way everything is explained: see docs/findings.md, "
    "'A zvol does not keep a sector whole'"
)
_CONTENT_LOST = "content that was flushed is gone, and no name that went back explains it"
_Found = tuple[Findings | None, tuple[str, ...]]
"""The findings about the loads that can be judged, if any can; and the reasons why others cannot."""


def check_data(
    evidence: Evidence, terms: Terms, earlier: Earlier, /, *, loads: Loads
) -> LayerFinding:
    """The data's verdict and counts; a loss includes the first complaints of the clients' kernels.

    Everything acknowledged is lost on a lost pool. It is also lost on a filesystem that no repair
    mends and from which nothing was read. All that was not read before an outage is lost, too.
    """
    acknowledged = evidence.ledger.acknowledged
    found, unknown = _judge(evidence, terms, earlier, loads)
    if found is None:
        found = Findings(acknowledged=0, lost=acknowledged if evidence.outage else 0)
    if found.verdict is None or evidence.outage is not None:
        found = structs.replace(found, acknowledged=found.acknowledged or acknowledged)
    return LayerFinding(
        layer=Layer.DATA,
        verdict=found.verdict,
        reasons=found.reasons,
        unknown=unknown,
        findings=found,
    )


def _is_gone(evidence: Evidence, filesystem: LayerFinding, loads: Loads) -> bool:
    is_read = any(load.readback in evidence.readbacks for load in loads)
    is_unread = not is_read or evidence.ledger.acknowledged == 0
    return filesystem.verdict is Verdict.UNREPAIRABLE and is_unread


def _judge(evidence: Evidence, terms: Terms, earlier: Earlier, loads: Loads) -> _Found:
    """The findings; where an earlier layer is unknown, only those of the read-back alone."""
    pool, filesystem = earlier[Layer.POOL], earlier[Layer.FILESYSTEM]
    if pool.verdict is Verdict.POOL_LOST or _is_gone(evidence, filesystem, loads):
        lost = evidence.ledger.acknowledged
        return Findings(acknowledged=0, lost=lost, reasons=_complaints(evidence)), ()
    if pool.distrusts_disk:
        sure = [load for load in loads if load.can_ignore_read_errors]
        ignoring = replace(evidence, ignores_read_errors=True)
        return _judge_loads(ignoring, terms, sure, after_repair=False)[0], ()
    if filesystem.unknown:
        found, _ = _judge_loads(evidence, terms, loads, after_repair=False)
        unknown: tuple[str, ...] = ()
    else:
        found, unknown = _judge_repaired(evidence, terms, filesystem, loads)
    found = _with_known(found, evidence, terms, filesystem, loads)
    if found is None:
        return None, unknown
    known = worst_or_none((pool.verdict, filesystem.verdict, found.verdict))
    if known is not None and known.is_loss:
        found = structs.replace(found, reasons=found.reasons + _complaints(evidence))
    return found, unknown


def _with_known(
    found: Findings | None,
    evidence: Evidence,
    terms: Terms,
    filesystem: LayerFinding,
    loads: Loads,
) -> Findings | None:
    """The findings with the failures of a client that lived, and the name of a known cause.

    A client's failures are known without a read-back, too.
    """
    is_worse = found is not None and found.verdict is not None and found.verdict.is_damage
    if not is_worse and (why := _lost_writers(evidence, terms, loads)):
        known = creations_that_met_their_file(evidence.ledger) if terms.repeats_requests else ()
        found = found or UNJUDGED
        return structs.replace(
            found, verdict=Verdict.REPAIRED, reasons=(*found.reasons, why, *known)
        )
    if found is not None and found.verdict is Verdict.ROLLED_BACK and terms.content_is_safe:
        sure = [load for load in loads if load.can_excuse_names]
        excused = replace(terms, excuses_names=True)
        kept, _ = _judge_loads(evidence, excused, sure, after_repair=False)
        if kept is not None and kept.verdict not in (None, Verdict.INTACT):
            reasons = (_CONTENT_LOST, *kept.reasons)
            return structs.replace(
                found, verdict=Verdict.CORRUPTED, rollback_ms=None, reasons=reasons
            )
    if found is None or found.verdict is not Verdict.CORRUPTED or terms.tears_sectors:
        return found
    torn, _ = _judge_repaired(evidence, replace(terms, tears_sectors=True), filesystem, loads)
    if torn is not None and torn.verdict is Verdict.INTACT:
        return structs.replace(found, reasons=(*found.reasons, _TORN_SECTOR))
    return found


def _judge_repaired(
    evidence: Evidence, terms: Terms, filesystem: LayerFinding, loads: Loads
) -> _Found:
    """The findings after a repair that worked, else before it."""
    before, unknown_before = _judge_loads(evidence, terms, loads, after_repair=False)
    if filesystem.verdict is not Verdict.REPAIRED or not filesystem.is_repaired:
        return before, unknown_before
    after, unknown = _judge_loads(evidence, terms, loads, after_repair=True)
    if after is None or after.verdict is not Verdict.ROLLED_BACK:
        return after, unknown
    if before is not None and before.verdict is Verdict.ROLLED_BACK and before.lost >= after.lost:
        return after, unknown
    # A state that needed a repair is no past state: its missing data were lost, not rolled back.
    reasons = ("acknowledged data is gone after a repair", *after.reasons)
    corrupted = structs.replace(after, verdict=Verdict.CORRUPTED, rollback_ms=None, reasons=reasons)
    return corrupted, unknown


def _judge_loads(evidence: Evidence, terms: Terms, loads: Loads, *, after_repair: bool) -> _Found:
    """Each load alone: an unreadable one hides no loss of another."""
    answers = [
        answer_of(partial(load.judge, evidence, terms, after_repair=after_repair)) for load in loads
    ]
    found = [findings for findings, _ in answers if findings is not None]
    unknown = tuple(why for _, whys in answers for why in whys)
    return together(found) if found else None, unknown


def _lost_writers(evidence: Evidence, terms: Terms, loads: Loads) -> str:
    """The failures of writers of a client that lived although the NAS came back; else empty.

    All data are there once the client starts again: that is more than a journal replay. A ledger that
    lacks a line may lack the reason why a failure is none.
    """
    if (lost := evidence.output(Step.CLIENT_LOST_ROOT)) is not None:
        return f"the client lost its root: {lost.stderr}"
    if not any(load.keeps_ledger for load in loads):
        return ""
    hello, _ = answer_of(lambda: whole_ledger(evidence, terms))
    return "" if hello is None else failed_writers(evidence.ledger).in_words


def _complaints(evidence: Evidence) -> tuple[str, ...]:
    found: list[str] = []
    for step in (Step.CLIENT_DMESG, Step.CHECK_DMESG):
        output = evidence.output(step)
        if output is not None:
            complaints = read_kernel_log(output).complaints[:_COMPLAINTS_MAX]
            found += [f"{output.vm}: {complaint}" for complaint in complaints]
    return tuple(found)
