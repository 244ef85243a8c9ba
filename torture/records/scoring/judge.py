"""The judge: evidence -> verdict, with pool, filesystem and data each scored on its own.

Each layer is judged on its own, and so is each load. One rule merges them: a loss that any of them shows
is a lower bound of the trial's verdict, whatever else cannot be read; without one, a layer or a load that
cannot be read makes the trial `inconclusive`. What did not come back at all makes a trial `unavailable`
at least. A pool that no import brings back has no filesystem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from torture.choices.matrix.axes import FILESYSTEM, ROOT, WORKLOAD
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import with_those_beside
from torture.choices.workloads.protocol import Workload
from torture.facts.axes.root import Root
from torture.facts.evidence.folder import CUT, Evidence, Step
from torture.facts.evidence.outage_document import Outage
from torture.facts.evidence.writers import failed_writers
from torture.oracles.verdict.booted.boot_verdict import with_boot
from torture.oracles.verdict.data_findings import Findings, together
from torture.oracles.verdict.filesystem_verdict import FilesystemFinding, judge_filesystem
from torture.oracles.verdict.judgement import Judgement
from torture.oracles.verdict.mount import read_kernel_log
from torture.oracles.verdict.nas_log import read_nas_lines
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.oracles.verdict.unreadable import UnreadableError
from torture.oracles.verdict.verdicts import Verdict, worst
from torture.records.scoring.administered import judge_administration
from torture.records.scoring.required import missing_evidence

_COMPLAINTS_MAX = 3
_AT_LEAST = "at least that: the evidence does not tell all"
Loads = Sequence[Workload]
_Answer = TypeVar("_Answer")


def judge(evidence: Evidence) -> Judgement:
    """The verdict of one trial; never raises for what the evidence lacks."""
    judgement = _with_administration(evidence, _judge_to_the_end(evidence))
    judgement = _with_what_is_missing(evidence, judgement)
    confirmed = evidence.cut.confirmed
    if not confirmed.is_made:
        return judgement
    what = (
        f"cut at event {confirmed.event}, before the drawn cut, for the audit: {confirmed.finding}"
    )
    return replace(judgement, reasons=(what, *judgement.reasons))


def _with_what_is_missing(evidence: Evidence, judgement: Judgement) -> Judgement:
    """Less evidence gives no better verdict: a loss stays one, all else is inconclusive."""
    missing = (*evidence.manifest.complaints, *missing_evidence(evidence))
    is_whole = judgement.verdict is not Verdict.INCONCLUSIVE and _AT_LEAST not in judgement.reasons
    if is_whole and not missing:
        return judgement
    known = [one for one in (judgement.verdict, _written_down(evidence)) if one.is_loss]
    if not known:
        return _inconclusive_after(judgement, missing) if missing else judgement
    return replace(judgement, verdict=worst(known), reasons=(*missing, *judgement.reasons))


def _written_down(evidence: Evidence) -> Verdict:
    """The verdict of the trial's manifest."""
    try:
        return Verdict(evidence.manifest.verdict)
    except ValueError:
        return Verdict.INCONCLUSIVE


def _with_administration(evidence: Evidence, judgement: Judgement) -> Judgement:
    """What became of what was done to the pool is part of the pool's verdict."""
    if evidence.garbled_tools:
        return judgement
    reasons: list[str] = []
    finding = _try(lambda: judge_administration(evidence), reasons)
    if finding is None:
        return _inconclusive_after(judgement, reasons) if reasons else judgement
    judgement = replace(judgement, administration=finding.outcome)
    if finding.verdict is Verdict.INTACT:
        return judgement
    judgement = replace(
        judgement,
        pool=worst([finding.verdict, *filter(None, [judgement.pool])]),
        reasons=(*finding.reasons, *judgement.reasons),
    )
    if judgement.verdict is Verdict.INCONCLUSIVE:
        return _at_least(judgement)
    return replace(judgement, verdict=worst([judgement.verdict, finding.verdict]))


def _judge_to_the_end(evidence: Evidence) -> Judgement:
    """The verdict of whichever cut was recovered, with what never came back and what is known."""
    judgement = _judge_seen(evidence)
    if not evidence.is_cut_read:
        judgement = _inconclusive_after(judgement, [f"{CUT} is missing or garbled"])
    if evidence.outage is not None:
        return _with_outage(evidence, judgement, evidence.outage)
    if judgement.verdict is Verdict.INCONCLUSIVE:
        return _at_least(judgement)
    if judgement.verdict is Verdict.INTACT and evidence.cut.is_empty:
        stalled = ": the load had stalled" if evidence.cut.is_stalled else ""
        why = f"an empty cut: nothing could have been lost{stalled}"
        return _inconclusive_after(judgement, [why])
    return judgement


def _with_outage(evidence: Evidence, judgement: Judgement, outage: Outage) -> Judgement:
    """What was waited for in vain is one finding more; what is not known to be there is lost."""
    pool = Verdict.UNAVAILABLE if outage.of_nas else judgement.pool
    known = [verdict for verdict in (pool, judgement.filesystem, judgement.data) if verdict]
    is_read = judgement.data is not None
    return replace(
        judgement,
        verdict=worst([Verdict.UNAVAILABLE, *known]),
        pool=pool,
        findings=replace(
            judgement.findings,
            lost=judgement.lost if is_read else evidence.ledger.acknowledged,
            acknowledged=judgement.acknowledged or evidence.ledger.acknowledged,
        ),
        reasons=(
            f"{outage.machine}, {outage.stage}: {outage.what}",
            *read_nas_lines(list(outage.kernel)).panics[:_COMPLAINTS_MAX],
            *judgement.reasons,
        ),
    )


def _at_least(judgement: Judgement) -> Judgement:
    """Its verdict is what is known to be lost, if something is."""
    parts = (judgement.pool, judgement.filesystem, judgement.data)
    known = [verdict for verdict in parts if verdict is not None]
    if not known or not worst(known).is_loss:
        return judgement
    reasons = (_AT_LEAST, *judgement.reasons)
    return replace(judgement, verdict=worst(known), reasons=reasons)


def _judge_seen(evidence: Evidence) -> Judgement:
    """The verdict by what was seen alone."""
    reasons: list[str] = []
    unread = Findings(acknowledged=evidence.ledger.acknowledged)
    unscored = Judgement(verdict=Verdict.INCONCLUSIVE, findings=unread)
    if evidence.garbled_tools:
        why = f"{evidence.garbled_tools} lines of tools are garbled"
        return _judge_without_errors(evidence, unscored, [why])
    pool = _try(lambda: judge_pool(evidence), reasons)
    if pool is None:
        if _has_failed_disk(evidence):
            return _judge_without_errors(evidence, unscored, reasons)
        return _inconclusive_after(_judge_disk(evidence, unscored), reasons)
    so_far = Judgement(
        verdict=pool.verdict,
        pool=pool.verdict,
        findings=unread,
        pool_summary=pool.summary,
        reasons=pool.reasons,
    )
    if pool.verdict is Verdict.POOL_LOST:
        return _with_all_lost(evidence, so_far)
    if pool.verdict is Verdict.INTACT and _has_failed_disk(evidence):
        why = "the checker's disk failed although the pool is whole"
        return _judge_without_errors(evidence, so_far, [why])
    return _judge_disk(evidence, so_far)


def _judge_without_errors(
    evidence: Evidence, so_far: Judgement, unknown: Sequence[str]
) -> Judgement:
    """Inconclusive, unless what could be read without an error shows a loss by itself.

    An error of reading proves nothing here: the disk may have failed beside the storage. A filesystem on
    it may be damaged by that, so that it is not scored.
    """
    loads = [load for load in _loads_of(evidence) if load.can_ignore_read_errors]
    ignoring = replace(evidence, ignores_read_errors=True)
    data, _ = _judge_loads(ignoring, loads, after_repair=False)
    return _inconclusive_after(_with_data(so_far, data), unknown)


def _judge_disk(evidence: Evidence, so_far: Judgement) -> Judgement:
    """The verdict once the pool is scored: what it gave back, and what is on it."""
    reasons: list[str] = []
    filesystem: FilesystemFinding | None = None
    try:
        cell = Cell.parse(str(evidence.spec.get("cell")))
    except ValueError as error:
        return _inconclusive_after(so_far, [str(error)])
    loads = _loads_of(evidence)
    if cell[FILESYSTEM].has_files:
        read_check = cell[FILESYSTEM].read_check
        filesystem = _try(lambda: judge_filesystem(evidence, read_check), reasons)
        if filesystem is not None and cell[ROOT] is Root.BOOT:
            mounted = filesystem
            filesystem = _try(lambda: with_boot(evidence, mounted), reasons)
        if filesystem is None:
            return _inconclusive_after(_with_data(so_far, _peek(evidence, loads)), reasons)
        so_far = replace(
            so_far,
            filesystem=filesystem.verdict,
            fsck=filesystem.summary,
            reasons=so_far.reasons + filesystem.reasons,
        )
        is_read = any(load.readback in evidence.readbacks for load in loads)
        unread = not is_read or so_far.acknowledged == 0
        if filesystem.verdict is Verdict.UNREPAIRABLE and unread:
            known = [
                verdict for verdict in (so_far.pool, filesystem.verdict) if verdict is not None
            ]
            so_far = replace(so_far, verdict=worst(known))
            return _with_all_lost(evidence, so_far)
    data, unknown = _judge_data(evidence, loads, filesystem)
    if data is None:
        return _inconclusive_after(so_far, unknown)
    so_far = _with_data(so_far, data)
    if (why := _lost_writers(evidence)) and so_far.data is Verdict.INTACT:
        repaired = replace(so_far.findings, verdict=Verdict.REPAIRED)
        so_far = replace(so_far, findings=repaired, reasons=(*so_far.reasons, why))
    verdicts = (so_far.pool, so_far.filesystem, so_far.data)
    overall = worst(verdict for verdict in verdicts if verdict is not None)
    reasons_all = so_far.reasons + (_complaints(evidence) if overall.is_loss else ())
    so_far = replace(so_far, verdict=overall, reasons=reasons_all)
    return _inconclusive_after(so_far, unknown) if unknown else so_far


_Data = tuple[Findings | None, tuple[str, ...]]
"""What became of the loads that can be judged, if any can; and why others cannot."""


def _loads_of(evidence: Evidence) -> Loads:
    try:
        return with_those_beside(Cell.parse(str(evidence.spec.get("cell")))[WORKLOAD])
    except ValueError:
        return ()


def _judge_data(evidence: Evidence, loads: Loads, filesystem: FilesystemFinding | None) -> _Data:
    """What became of what was acknowledged: after the repair if one worked, else as read before."""
    if filesystem is None or filesystem.verdict is not Verdict.REPAIRED or not filesystem.repaired:
        return _judge_loads(evidence, loads, after_repair=False)
    after, unknown = _judge_loads(evidence, loads, after_repair=True)
    if after is None or after.verdict is not Verdict.ROLLED_BACK:
        return after, unknown
    before = _peek(evidence, loads)
    if before is not None and before.verdict is Verdict.ROLLED_BACK and before.lost >= after.lost:
        return after, unknown
    # A state that had to be repaired is no past state: what is gone was lost, not rolled back.
    why = "acknowledged data is gone after a repair"
    corrupted = replace(
        after, verdict=Verdict.CORRUPTED, rollback_ms=None, reasons=(why, *after.reasons)
    )
    return corrupted, unknown


def _judge_loads(evidence: Evidence, loads: Loads, *, after_repair: bool) -> _Data:
    """Each load on its own: what one cannot say hides nothing that another one lost."""
    unknown: list[str] = []
    judged = [
        _try(partial(load.judge, evidence, after_repair=after_repair), unknown) for load in loads
    ]
    found = [findings for findings in judged if findings is not None]
    return together(found) if found else None, tuple(unknown)


def _peek(evidence: Evidence, loads: Loads) -> Findings | None:
    """What the read-back before any repair shows, as far as it can be told."""
    return _judge_loads(evidence, loads, after_repair=False)[0]


def _lost_writers(evidence: Evidence) -> str:
    """Why some of the client that lived had nothing to go on with, although the NAS was back; else empty.

    All is there once it is started again: that is more than a journal replay.
    """
    if (lost := evidence.output(Step.CLIENT_LOST_ROOT)) is not None:
        return f"the client lost its root: {lost.stderr}"
    return failed_writers(evidence.ledger).in_words


def _with_data(judgement: Judgement, data: Findings | None) -> Judgement:
    if data is None:
        return judgement
    return replace(
        judgement,
        findings=replace(data, reasons=()),
        reasons=judgement.reasons + data.reasons,
    )


def _with_all_lost(evidence: Evidence, judgement: Judgement) -> Judgement:
    """Nothing can be read any more: whatever was acknowledged is lost to its owner."""
    reasons = judgement.reasons + _complaints(evidence)
    findings = replace(judgement.findings, lost=judgement.acknowledged)
    return replace(judgement, findings=findings, reasons=reasons)


def _complaints(evidence: Evidence) -> tuple[str, ...]:
    """The first complaints of the clients' kernels, to go with a loss."""
    found: list[str] = []
    for step in (Step.CLIENT_DMESG, Step.CHECK_DMESG):
        output = evidence.output(step)
        if output is not None:
            complaints = read_kernel_log(output).complaints[:_COMPLAINTS_MAX]
            found += [f"{output.vm}: {complaint}" for complaint in complaints]
    return tuple(found)


def _has_failed_disk(evidence: Evidence) -> bool:
    steps = (Step.CHECK_DMESG, Step.BOOT, Step.BOOT_DMESG, Step.BOOT_AFTER_REPAIR)
    logs = (evidence.output(step) for step in steps)
    return any(read_kernel_log(log).disk_failed for log in logs if log is not None)


def _try(question: Callable[[], _Answer], reasons: list[str]) -> _Answer | None:
    """The answer, or None with the reason why there is none."""
    try:
        return question()
    except UnreadableError as error:
        reasons.append(str(error))
        return None
    except RecursionError:
        reasons.append("what was printed or read back is nested too deeply")
        return None


def _inconclusive_after(judgement: Judgement, reasons: Sequence[str]) -> Judgement:
    """Inconclusive as a whole; what was scored stays, so that nothing is hidden."""
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, reasons=(*reasons, *judgement.reasons))
