"""The checkers of the pool, the client's filesystem, the outage, and an administration under way.

That of the pool also looks at the disk through which the client read the pool's volume.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.filesystems.protocol import Filesystem
from torture.facts.evidence.folder import CUT, AdministrationDocument, Evidence, Step
from torture.oracles.verdict.boot_verdict import with_boot
from torture.oracles.verdict.filesystem_verdict import judge_filesystem
from torture.oracles.verdict.guarantee import Terms, Verdict, answer_of
from torture.oracles.verdict.mount import read_kernel_log, read_nas_log
from torture.oracles.verdict.pool_verdict import judge_pool
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


_FAILED_DISK = "the checker's disk failed although the pool is whole"
_PANICS_MAX = 3
_CHECKS = (Step.FS_CHECK_AFTER_REPAIR, Step.FS_CHECK)
_LOGS = (Step.CHECK_DMESG, Step.BOOT, Step.BOOT_DMESG, Step.BOOT_AFTER_REPAIR)


def check_pool(evidence: Evidence, terms: Terms, _earlier: Earlier, /) -> LayerFinding:
    """The pool's verdict; a disk that fails on a pool without errors is the machinery's fault."""
    pool = judge_pool(evidence, is_replay=terms.is_replay)
    garbled = evidence.garbled_tools
    unknown = (*((f"{garbled} lines of tools are garbled",) if garbled else ()), *pool.unknown)
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


def check_filesystem(
    evidence: Evidence, _terms: Terms, earlier: Earlier, /, *, filesystem: Filesystem, is_root: bool
) -> LayerFinding:
    """The filesystem's verdict; none on a lost pool, and none where its disk may have failed."""
    pool = earlier[Layer.POOL]
    if pool.verdict is Verdict.POOL_LOST or pool.distrusts_disk or not filesystem.has_files:
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
