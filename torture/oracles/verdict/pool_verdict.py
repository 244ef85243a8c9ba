"""The pool's own verdict, from the attempted imports, the scrub and the status after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from torture.facts.evidence.cut_document import GONE
from torture.facts.evidence.folder import IMPORTS, IMPORTS_AGAIN, Evidence, Step, ToolOutput
from torture.oracles.verdict.fsck import lines_of
from torture.oracles.verdict.guarantee import UnreadableError, Verdict, answer_of
from torture.oracles.verdict.judgement import PartFinding, all_known
from torture.oracles.verdict.mount import read_nas_log
from torture.oracles.verdict.pool_tools.zpool import (
    PoolStatus,
    finds_no_pool,
    parse_import,
    parse_status,
    parse_zdb,
    refuse_unfinished_scrub,
)

_MISSING = ("CANT_OPEN", "UNAVAIL", "REMOVED")
_LINES_MAX = 3
_TRIES = (
    (Verdict.INTACT, ""),
    (Verdict.REPAIRED, "needed -m (without its log device)"),
    (Verdict.ROLLED_BACK, "needed -F (gave up its last transactions)"),
)
"""Of each of an operator's tries (`IMPORTS`): the verdict if it works, and its words."""
_MAY_BE_LATE = "one or more devices is currently unavailable"
"""Also the refusal of an import to which the kernel does not show all disks yet."""
_UNKNOWN_DISKS = "it is unknown whether a disk was taken away"


def judge_pool(
    evidence: Evidence, *, is_replay: bool = False, was_down: bool = True
) -> PartFinding:
    """Score the pool by each piece of evidence alone: an unreadable one hides no finding of another.

    Only a pool that was scrubbed to its end is known to be intact, by its status after that.

    - Intact: a plain import gives a pool without errors. It may lack a disk that the trial took
      away.
    - Repaired: the import was refused at first, or had to go without its log. Or a device erred, or
      data were unreadable for a time, and ZFS healed it. The data's verdict has the loss with the log.
    - Rolled back: the import had to give up transactions.
    - Corrupted: ZFS itself counts data that it cannot give back, or could not replay its log.
      Blocks that are leaked or used twice corrupt the pool, too.
    - Unavailable: its kernel module gave up, whether the scrub was refused or not.
    - Lost: no import works.

    `was_down`: whether the NAS had to import it after the cut.
    """
    # a replay begins with the disks that the check found after a second cut
    was_cut_again = evidence.cut.second is not None and not is_replay
    rounds = (IMPORTS, IMPORTS_AGAIN) if was_cut_again else (IMPORTS,) if was_down else ()
    imported = all_known(*(_imported(evidence, imports) for imports in rounds))
    if imported.verdict is Verdict.POOL_LOST:
        return replace(imported, unknown=())
    status = all_known(_status(evidence))
    summary = ", ".join(filter(None, (status.summary, imported.summary)))
    is_remarkable = imported.summary or (status.verdict and status.verdict.is_damage)
    said = [PartFinding(reasons=(f"pool: {summary}",))] if is_remarkable else []
    known = all_known([imported, *said, status], _blocks(evidence), _in_log(evidence))
    return replace(known, summary=summary)


def _imported(evidence: Evidence, imports: Sequence[Step]) -> Iterator[PartFinding]:
    """The way in which the pool came back, if it did. Raises `UnreadableError`."""
    refusals: list[str] = []
    is_sure = False
    for step, (best, needed) in zip(imports, _TRIES, strict=True):
        tries = [output for output in evidence.tools if output.step == step]
        if is_sure:
            # no later try can give back more
            yield PartFinding(verdict=best, reasons=tuple(refusals))
        if not tries:
            raise UnreadableError(f"{step} was never tried")
        if finds_no_pool(tries[-1]) and refusals:
            refusals.append(f"{step}: no pool is found any more")
            continue
        result = parse_import(tries[-1])
        if result.is_done:
            if best is Verdict.INTACT and any(map(_is_the_pools, tries[:-1])):
                best, needed = Verdict.REPAIRED, "needed a second try"
            said = (*refusals, *map(_refused_at_first, tries[:-1]), *filter(None, [result.reason]))
            yield PartFinding(verdict=best, summary=needed, reasons=said)
            for output in tries[:-1]:
                if not lines_of(output):
                    raise UnreadableError(f"{step} was refused at first, and its reason is missing")
            return
        refusals.append(f"{step}: {result.reason}")
        is_sure = len(tries) > 1 or _is_the_pools(tries[-1])
    yield PartFinding(
        verdict=Verdict.POOL_LOST, summary="cannot be imported", reasons=tuple(refusals)
    )


def _refused_at_first(output: ToolOutput) -> str:
    """The refusal of an import that then succeeded at a second request."""
    said = " ".join(lines_of(output))
    return f"{output.step}: refused at first, and done at the second attempt: {said}"


def _is_the_pools(refusal: ToolOutput) -> bool:
    """Whether a refused import shows damage; not where a disk's link may have been gone for a moment."""
    attempt, _ = answer_of(lambda: parse_import(refusal))
    return attempt is not None and not attempt.is_done and _MAY_BE_LATE not in attempt.reason


def _status(evidence: Evidence) -> Iterator[PartFinding]:
    """The pool's status: one after a whole scrub vouches, and the errors of any other one stand."""
    every = [output for output in evidence.tools if output.step == Step.POOL_STATUS]
    read = [status for output in every if (status := answer_of(partial(parse_status, output))[0])]
    if any(status.data_errors for status in read):
        if read[-1].data_errors:
            yield PartFinding(verdict=Verdict.CORRUPTED, summary=read[-1].summary)
        else:
            why = "pool: it had data errors, which are gone after the scrub"
            yield PartFinding(verdict=Verdict.REPAIRED, reasons=(why,))
    status = parse_status(_status_after_scrub(evidence))
    if not status.scrubbed:
        raise UnreadableError(
            f"{Step.POOL_STATUS}: the pool was not scrubbed to its end: no scrub has finished"
        )
    yield PartFinding(verdict=_verdict(status, evidence), summary=status.summary)


def _blocks(evidence: Evidence) -> Iterator[PartFinding]:
    """The findings of zdb about the pool's blocks; evidence of older versions of the suite has none."""
    output = evidence.output(Step.POOL_BLOCKS)
    if output is None:
        if evidence.output(Step.POOL_BLOCKS_ASTIR) is not None:
            raise UnreadableError(f"{Step.POOL_BLOCKS}: the pool was never idle for it")
        return
    blocks = parse_zdb(output)
    if blocks.is_sound or (blocks.counts_what_is_missing and _disks_gone(evidence)):
        return
    if blocks.counts_what_is_missing and not evidence.is_cut_read:
        raise UnreadableError(f"{Step.POOL_BLOCKS}: {_UNKNOWN_DISKS}")
    quoted = [f"{Step.POOL_BLOCKS}: {line}" for line in blocks.problems[:_LINES_MAX]]
    gave_up = [f"{Step.POOL_BLOCKS}: zdb gave up"] if blocks.gave_up else []
    yield PartFinding(verdict=Verdict.CORRUPTED, reasons=(*gave_up, *quoted))


def _in_log(evidence: Evidence) -> Iterator[PartFinding]:
    """The NAS's kernel messages about ZFS; evidence of older versions of the suite has no log of it."""
    outputs = [output for output in evidence.tools if output.step == Step.NAS_DMESG]
    logs = [read_nas_log(lines_of(output)) for output in outputs]
    panics = [line for log in logs for line in log.panics]
    lines = panics + [line for log in logs for line in log.replay_errors]
    if lines:
        yield PartFinding(
            verdict=Verdict.UNAVAILABLE if panics else Verdict.CORRUPTED,
            reasons=tuple(f"nas: {line}" for line in lines[:_LINES_MAX]),
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


def _verdict(status: PoolStatus, evidence: Evidence) -> Verdict:
    """The verdict by a status; raises `UnreadableError` where the cut's document would decide it."""
    if is_damaged(status.state, errors=status.data_errors):
        return Verdict.CORRUPTED
    states = Counter(device.rsplit(" ", 1)[-1] for device in status.unhealthy_devices)
    missing = sum(states.pop(state, 0) for state in _MISSING)
    states.pop("DEGRADED", None)
    if status.device_errors or states:
        return Verdict.REPAIRED
    if missing and not evidence.is_cut_read:
        raise UnreadableError(f"{Step.POOL_STATUS}: {_UNKNOWN_DISKS}")
    # a mirror exists for a disk that was taken away
    return Verdict.INTACT if missing <= _disks_gone(evidence) else Verdict.REPAIRED


def is_damaged(state: str, *, errors: int) -> bool:
    """Whether an imported pool in this state, with so many damaged blocks, lost data."""
    return errors > 0 or state not in ("ONLINE", "DEGRADED")


def _disks_gone(evidence: Evidence) -> int:
    """The number of disks that the trial took away with the cut."""
    return sum(disk.policy == GONE for disk in evidence.cut.disks.values())
