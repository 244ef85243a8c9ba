"""The checkers: each judges one layer of a trial alone.

That of the pool also looks at the disk through which the client read the pool's volume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Protocol

from msgspec import structs

from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.filesystems.protocol import Filesystem
from torture.choices.workloads.protocol import Workload
from torture.facts.evidence.folder import CUT, AdministrationDocument, Evidence, Step
from torture.oracles.verdict.boot_verdict import with_boot
from torture.oracles.verdict.filesystem_verdict import judge_filesystem
from torture.oracles.verdict.guarantee import Terms, Verdict, answer_of, worst_or_none
from torture.oracles.verdict.image_verdict import judge_image
from torture.oracles.verdict.judgement import UNJUDGED, Findings, together
from torture.oracles.verdict.mount import read_kernel_log, read_nas_log
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.oracles.verdict.repeated_requests import creations_that_met_their_file, whole_ledger
from torture.records.record.trials import Remedy
from torture.records.scoring.service import CAME_BACK, failed_writers, remedy_of


class Layer(StrEnum):
    """The layers, in the order of their words in the judgement.

    The judge has the order of the checkers (`torture/records/scoring/judge.py`).
    """

    ADMINISTRATION = "administration"
    OUTAGE = "outage"
    POOL = "pool"
    IMAGE = "image"
    FILESYSTEM = "filesystem"
    DATA = "data"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerFinding:
    """The finding of one checker."""

    layer: Layer
    verdict: Verdict | None = None
    """The worst verdict that the checker knows; None where the evidence shows nothing of this
    layer."""
    reasons: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Why the checker cannot say more; empty where it knows everything about its layer."""
    summary: str = ""
    """A few words for a table: the pool's state, the result of fsck, the administration's outcome."""
    is_repaired: bool = False
    """Whether fsck repaired the filesystem: its result counts, not the state before."""
    distrusts_disk: bool = False
    """Whether a read error proves nothing: the disk may have failed beside the pool."""
    findings: Findings = UNJUDGED
    """The counts of the data's checker."""


Earlier = Mapping[Layer, LayerFinding]
"""The findings of the checkers before."""


class Checker(Protocol):
    """A function of the evidence and of the findings that it depends on; it raises nothing."""

    def __call__(self, evidence: Evidence, terms: Terms, earlier: Earlier, /) -> LayerFinding:
        """The finding about the checker's layer."""


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


_FAILED_DISK = "the checker's disk failed although the pool is whole"
_SPLIT = "the former node imported the pool that another node had taken over"
_PANICS_MAX = 3
_CHECKS = (Step.FS_CHECK_AFTER_REPAIR, Step.FS_CHECK)
_LOGS = (Step.CHECK_DMESG, Step.BOOT, Step.BOOT_DMESG, Step.BOOT_AFTER_REPAIR)


def check_pool(evidence: Evidence, terms: Terms, _earlier: Earlier, /) -> LayerFinding:
    """The pool's verdict; a disk that fails on a pool without errors is the machinery's fault."""
    former = evidence.output(Step.FORMER_IMPORT)
    if former is not None and former.exit_code == 0:
        return LayerFinding(
            layer=Layer.POOL, verdict=Verdict.SPLIT_BRAIN, reasons=(_SPLIT,), summary="split brain"
        )
    was_down = terms.is_replay or not terms.nas_lives
    pool = judge_pool(evidence, is_replay=terms.is_replay, was_down=was_down)
    garbled = evidence.garbled_tools
    unknown = (*((f"{garbled} lines of tools are garbled",) if garbled else ()), *pool.unknown)
    if former is None and terms.former_returns:
        unknown = (*unknown, f"{Step.FORMER_IMPORT} was not run")
    is_explained = pool.verdict is not None and (
        pool.verdict.is_corruption or (pool.verdict.is_damage and not unknown)
    )
    distrusts = _has_failed_disk(evidence) and not is_explained
    if pool.verdict is Verdict.INTACT and distrusts and not unknown:
        unknown = (_FAILED_DISK,)
    return LayerFinding(
        layer=Layer.POOL,
        verdict=pool.verdict,
        reasons=pool.reasons,
        unknown=unknown,
        summary=pool.summary,
        distrusts_disk=distrusts,
    )


def _has_failed_disk(evidence: Evidence) -> bool:
    """Whether it failed while something needed it: after the last unmount only the checker does."""
    outputs = (evidence.output(step) for step in _LOGS)
    logs = [read_kernel_log(output) for output in outputs if output is not None]
    checks = (evidence.output(step) for step in _CHECKS)
    last_check = next((check for check in checks if check is not None), None)
    has_vouched = last_check is not None and last_check.exit_code == 0
    return any(log.disk_failed or (log.disk_failed_later and not has_vouched) for log in logs)


def check_image(evidence: Evidence, _terms: Terms, _earlier: Earlier, /) -> LayerFinding:
    """The verdict of a hypervisor's image: a fresh hypervisor looked at it, and opened it."""
    found = judge_image(evidence)
    return LayerFinding(
        layer=Layer.IMAGE,
        verdict=found.verdict,
        reasons=found.reasons,
        unknown=found.unknown,
        summary=found.summary,
    )


def _is_image_lost(earlier: Earlier) -> bool:
    image = earlier.get(Layer.IMAGE)
    return image is not None and image.verdict is Verdict.UNREPAIRABLE


def check_filesystem(
    evidence: Evidence, _terms: Terms, earlier: Earlier, /, *, filesystem: Filesystem, is_root: bool
) -> LayerFinding:
    """The filesystem's verdict; none on a lost pool or image, or where its disk may have failed."""
    pool = earlier[Layer.POOL]
    is_unreachable = pool.verdict is Verdict.POOL_LOST or _is_image_lost(earlier)
    if is_unreachable or pool.distrusts_disk or not filesystem.has_files:
        return LayerFinding(layer=Layer.FILESYSTEM)
    found = judge_filesystem(evidence, filesystem.read_check)
    if is_root:
        found = with_boot(evidence, found)
    return LayerFinding(
        layer=Layer.FILESYSTEM,
        verdict=found.verdict,
        reasons=found.reasons,
        unknown=found.unknown,
        summary=found.summary,
        is_repaired=found.repaired,
    )


def check_outage(evidence: Evidence, _terms: Terms, _earlier: Earlier, /) -> LayerFinding:
    """Unavailable where a machine did not come back, with the panics of its kernel."""
    unknown = () if evidence.is_cut_read else (f"{CUT} is missing or garbled",)
    outage = evidence.outage
    if outage is None:
        return LayerFinding(layer=Layer.OUTAGE, unknown=unknown)
    return LayerFinding(
        layer=Layer.OUTAGE,
        verdict=Verdict.UNAVAILABLE,
        reasons=(
            f"{outage.machine}, {outage.stage}: {outage.what}",
            *read_nas_log(list(outage.kernel)).panics[:_PANICS_MAX],
        ),
        unknown=unknown,
    )


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
    found, unknown = _judge_data(evidence, terms, earlier, loads)
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


def _judge_data(evidence: Evidence, terms: Terms, earlier: Earlier, loads: Loads) -> _Found:
    """The findings; where an earlier layer is unknown, only those of the read-back alone."""
    pool, filesystem = earlier[Layer.POOL], earlier[Layer.FILESYSTEM]
    is_unreachable = pool.verdict is Verdict.POOL_LOST or _is_image_lost(earlier)
    if is_unreachable or _is_gone(evidence, filesystem, loads):
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
    verdict, why = _lost_writers(evidence, terms, loads)
    if not is_worse and verdict is not None:
        known = creations_that_met_their_file(evidence.ledger) if terms.repeats_requests else ()
        found = found or UNJUDGED
        return structs.replace(found, verdict=verdict, reasons=(*found.reasons, why, *known))
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


def _lost_writers(evidence: Evidence, terms: Terms, loads: Loads) -> tuple[Verdict | None, str]:
    """The failures of writers of a client that lived although the NAS came back; None without any.

    All data are there once the client starts again: that is more than a journal replay. A ledger that
    lacks a line may lack the reason why a failure is none.
    """
    if (lost := evidence.output(Step.CLIENT_LOST_ROOT)) is not None:
        return (
            Verdict.OFFLINE,
            f"the client lost its root, and {CAME_BACK[Remedy.RESTART]}: {lost.stderr}",
        )
    if not any(load.keeps_ledger for load in loads):
        return None, ""
    hello, _ = answer_of(lambda: whole_ledger(evidence, terms))
    failed = failed_writers(evidence.ledger, before_cut=terms.may_fail_before_cut)
    if hello is None or not failed.count:
        return None, ""
    if failed.are_offline(gives_up=terms.client_gives_up):
        came_back = CAME_BACK[remedy_of(evidence, failed)]
        return Verdict.OFFLINE, f"the client's disk was dead, and {came_back}: {failed.in_words}"
    return Verdict.REPAIRED, failed.in_words


def _complaints(evidence: Evidence) -> tuple[str, ...]:
    found: list[str] = []
    for step in (Step.CLIENT_DMESG, Step.CHECK_DMESG):
        output = evidence.output(step)
        if output is not None:
            complaints = read_kernel_log(output).complaints[:_COMPLAINTS_MAX]
            found += [f"{output.vm}: {complaint}" for complaint in complaints]
    return tuple(found)
