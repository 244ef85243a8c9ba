"""The pool's own verdict, from the attempted imports, the scrub and the status after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torture.facts.evidence.cut_document import GONE
from torture.facts.evidence.folder import IMPORTS, IMPORTS_AGAIN, Evidence, Step, ToolOutput
from torture.oracles.verdict.fsck import lines_of
from torture.oracles.verdict.judgement import PartFinding
from torture.oracles.verdict.mount import read_nas_log
from torture.oracles.verdict.pool_tools.status import PoolStatus, parse_status
from torture.oracles.verdict.pool_tools.zdb import parse_zdb
from torture.oracles.verdict.pool_tools.zpool import (
    finds_no_pool,
    parse_import,
    refuse_unfinished_scrub,
)
from torture.oracles.verdict.unreadable import UnreadableError
from torture.oracles.verdict.verdicts import Verdict, worst

_MISSING = ("CANT_OPEN", "UNAVAIL", "REMOVED")
_NEEDED_REWIND = "needed -F (gave up its last transactions)"
_LINES_MAX = 3
_NEEDED = ("", "needed -m (without its log device)", _NEEDED_REWIND)
"""The words for each of an operator's tries (`IMPORTS`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Import:
    """The way in which a pool came back: its losses, and its messages."""

    needed: tuple[str, ...]
    reasons: tuple[str, ...]


def judge_pool(evidence: Evidence, *, is_replay: bool = False) -> PartFinding:
    """Score the pool; raises `UnreadableError` when the evidence is unclear.

    Only a pool that was scrubbed to its end is scored, by its status after that.

    - Intact: a plain import gives a pool without errors. It may lack a disk that the trial took
      away.
    - Repaired: the import had to go without its log, or a device erred and ZFS healed it. The
      data's verdict has the loss with the log.
    - Rolled back: the import had to give up transactions.
    - Corrupted: ZFS itself counts data that it cannot give back, or could not replay its log.
      Blocks that are leaked or used twice corrupt the pool, too.
    - Unavailable: its kernel module gave up, whether the scrub was refused or not.
    - Lost: no import works.
    """
    # a replay begins with the disks that the check found after a second cut
    was_cut_again = evidence.cut.second is not None and not is_replay
    try:
        return _judge_imported(evidence, was_cut_again=was_cut_again)
    except UnreadableError as error:
        nothing_else = PartFinding(verdict=Verdict.INTACT, summary=str(error))
        finding = _with_log(evidence, nothing_else)
        if finding.verdict is Verdict.INTACT:
            raise
        return finding


def _judge_imported(evidence: Evidence, *, was_cut_again: bool) -> PartFinding:
    came_back = _Import(needed=(), reasons=())
    for imports in (IMPORTS, IMPORTS_AGAIN) if was_cut_again else (IMPORTS,):
        now = _imported(evidence, imports)
        if isinstance(now, PartFinding):
            return now
        came_back = _Import(
            needed=tuple(dict.fromkeys(came_back.needed + now.needed)),
            reasons=came_back.reasons + now.reasons,
        )
    return _judge_status(evidence, came_back)


def _imported(evidence: Evidence, imports: Sequence[Step]) -> _Import | PartFinding:
    """The way in which the pool came back; the finding when it did not. Raises `UnreadableError`."""
    refusals: list[str] = []
    for step, needed in zip(imports, _NEEDED, strict=True):
        output = evidence.output(step)
        if output is None:
            raise UnreadableError(f"{step} was never tried")
        if refusals and finds_no_pool(output):
            refusals.append(f"{step}: no pool is found any more")
            continue
        result = parse_import(output)
        if result.is_done:
            said = (*refusals, *_refused_at_first(evidence, step), *filter(None, [result.reason]))
            return _Import(needed=(needed,) if needed else (), reasons=said)
        refusals.append(f"{step}: {result.reason}")
    return PartFinding(
        verdict=Verdict.POOL_LOST, summary="cannot be imported", reasons=tuple(refusals)
    )


def _refused_at_first(evidence: Evidence, step: Step) -> Iterator[str]:
    """The refusal of an import that then succeeded at a second request."""
    *before, _ = (tool for tool in evidence.tools if tool.step == step)
    for output in before:
        said = " ".join(lines_of(output))
        yield f"{step}: refused at first, and done at the second attempt: {said}"


def _judge_status(evidence: Evidence, imported: _Import) -> PartFinding:
    needed, reasons = imported.needed, imported.reasons
    status = parse_status(_status_after_scrub(evidence))
    has_faults = bool(status.data_errors or status.device_errors or status.unhealthy_devices)
    erred = has_faults and not _is_only_short_of(status, _disks_gone(evidence))
    if not status.scrubbed:
        raise UnreadableError(
            f"{Step.POOL_STATUS}: the pool was not scrubbed to its end: no scrub has finished"
        )
    summary = ", ".join((status.summary, *needed))
    finding = PartFinding(
        verdict=_verdict(status, needed=needed, erred=erred),
        summary=summary,
        reasons=(*reasons, f"pool: {summary}") if needed or erred else reasons,
    )
    return _with_log(evidence, _with_blocks(evidence, finding))


def _with_blocks(evidence: Evidence, finding: PartFinding) -> PartFinding:
    """The findings of zdb about the pool's blocks; evidence of older versions of the suite has none."""
    output = evidence.output(Step.POOL_BLOCKS)
    if output is None:
        if evidence.output(Step.POOL_BLOCKS_ASTIR) is not None:
            raise UnreadableError(f"{Step.POOL_BLOCKS}: the pool was never idle for it")
        return finding
    blocks = parse_zdb(output)
    if blocks.is_sound or (blocks.counts_what_is_missing and _disks_gone(evidence)):
        return finding
    if blocks.counts_what_is_missing and not evidence.is_cut_read:
        raise UnreadableError(f"{Step.POOL_BLOCKS}: it is unknown whether a disk was taken away")
    quoted = [f"{Step.POOL_BLOCKS}: {line}" for line in blocks.problems[:_LINES_MAX]]
    gave_up = [f"{Step.POOL_BLOCKS}: zdb gave up"] if blocks.gave_up else []
    return replace(
        finding,
        verdict=worst((finding.verdict, Verdict.CORRUPTED)),
        reasons=(*finding.reasons, *gave_up, *quoted),
    )


def _with_log(evidence: Evidence, finding: PartFinding) -> PartFinding:
    """The NAS's kernel messages about ZFS; evidence of older versions of the suite has no log of it."""
    outputs = [output for output in evidence.tools if output.step == Step.NAS_DMESG]
    logs = [read_nas_log(lines_of(output)) for output in outputs]
    panics = [line for log in logs for line in log.panics]
    lines = panics + [line for log in logs for line in log.replay_errors]
    if not lines:
        return finding
    said = Verdict.UNAVAILABLE if panics else Verdict.CORRUPTED
    return replace(
        finding,
        verdict=worst((finding.verdict, said)),
        reasons=(*finding.reasons, *(f"nas: {line}" for line in lines[:_LINES_MAX])),
    )


def _status_after_scrub(evidence: Evidence) -> ToolOutput:
    """An earlier status says nothing about data that were not read yet."""
    status: ToolOutput | None = None
    for output in reversed(evidence.tools):
        if output.step == Step.POOL_SCRUB:
            refuse_unfinished_scrub(output)
            if status is None:
                raise UnreadableError("the pool's status was never read after its scrub")
            return status
        if output.step == Step.POOL_STATUS and status is None:
            status = output
    raise UnreadableError(f"{Step.POOL_SCRUB} was never run: the pool was not scrubbed to its end")


def _verdict(status: PoolStatus, *, needed: tuple[str, ...], erred: bool) -> Verdict:
    if status.data_errors or status.state not in ("ONLINE", "DEGRADED"):
        return Verdict.CORRUPTED
    if _NEEDED_REWIND in needed:
        return Verdict.ROLLED_BACK
    return Verdict.REPAIRED if needed or erred else Verdict.INTACT


def _disks_gone(evidence: Evidence) -> int:
    """The number of disks that the trial took away with the cut."""
    return sum(disk.policy == GONE for disk in evidence.cut.disks.values())


def _is_only_short_of(status: PoolStatus, gone: int) -> bool:
    """Whether the pool's only faults are disks that were taken away: a mirror exists for this."""
    states = Counter(device.rsplit(" ", 1)[-1] for device in status.unhealthy_devices)
    missing = sum(states.pop(state, 0) for state in _MISSING)
    states.pop("DEGRADED", None)
    return not status.device_errors and not states and missing <= gone
