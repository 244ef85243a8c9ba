"""The client's filesystem: its own verdict, from mounts, checks and repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from torture.facts.evidence.folder import Evidence, Step, ToolOutput
from torture.oracles.verdict.fsck import FsckResult
from torture.oracles.verdict.guarantee import DidNotWork, UnreadableError, Verdict, answer_of
from torture.oracles.verdict.judgement import PartFinding, all_known
from torture.oracles.verdict.mount import parse_mount, read_kernel_log

ReadCheck = Callable[[ToolOutput], FsckResult]
"""The reader of a filesystem checker's output; raises `UnreadableError` for an unclear one."""

_PROBLEMS_MAX = 3


def judge_filesystem(evidence: Evidence, read_check: ReadCheck) -> PartFinding:
    """Score the filesystem by each piece of evidence alone: an unreadable one hides no other finding.

    - Intact: it mounts (the journal may be replayed) and the checker vouches for it afterwards.
    - Repaired by copies: the checker, or the kernel during its read of everything, found bad copies
      beside good ones.
    - Repaired by the mount: the mount healed the problems that a look before it had found.
    - Repaired by a repair: after it the filesystem mounts and the checker vouches for it. It is at
      least that once it needs a repair.
    - Unrepairable: otherwise, and when it does not mount and its repair does not end.

    A checker's word counts only after an unmount. A repair's word counts only as proof that it
    could work: the mount and the check after it show the result.
    """
    return all_known(
        _course(evidence, read_check),
        _before_mount(evidence, read_check),
        _beside_unread_mount(evidence, read_check),
        _bad_copies(evidence),
    )


def _course(evidence: Evidence, read_check: ReadCheck) -> Iterator[PartFinding]:
    """The mount and the check, then the repair if one is needed; raises `UnreadableError`."""
    mount = parse_mount(needed_output(evidence, Step.FS_MOUNT))
    if mount.is_done:
        _need_unmounted(evidence, Step.FS_UMOUNT)
        check = _after_a_mount(read_check(needed_output(evidence, Step.FS_CHECK)))
        reasons, before = _quote(Step.FS_CHECK, check), check.summary
        if check.clean:
            verdict = Verdict.REPAIRED if check.problems else Verdict.INTACT
            yield PartFinding(
                verdict=verdict, summary=before + _replayed(evidence), reasons=reasons
            )
            return
    else:
        reasons, before = (f"mount: {mount.reason}",), f"will not mount: {mount.reason}"
    yield PartFinding(verdict=Verdict.REPAIRED, summary=before, reasons=reasons)
    repair_output = needed_output(evidence, Step.FS_REPAIR)
    if not mount.is_done and repair_output.exit_code is None:
        yield _unrepairable(f"{before}; the repair did not end")
        return
    repair = _repair_said(repair_output, read_check)
    again = parse_mount(needed_output(evidence, Step.FS_MOUNT_AFTER_REPAIR))
    if not again.is_done:
        reasons = (*_quote(Step.FS_REPAIR, repair), f"mount after the repair: {again.reason}")
        yield _unrepairable(f"{before}; no repair makes it mount", reasons)
        return
    _need_unmounted(evidence, Step.FS_UMOUNT_AFTER_REPAIR)
    after = _after_a_mount(read_check(needed_output(evidence, Step.FS_CHECK_AFTER_REPAIR)))
    if not after.clean:
        reasons = _quote(Step.FS_CHECK_AFTER_REPAIR, after)
        yield _unrepairable(f"{before}; errors are left after the repair", reasons)
        return
    yield PartFinding(verdict=Verdict.REPAIRED, summary=f"{before}; repaired", repaired=True)


def _before_mount(evidence: Evidence, read_check: ReadCheck) -> Iterator[PartFinding]:
    """The problems before the mount; older evidence lacks a look before."""
    output = evidence.output(Step.FS_FIRST_CHECK)
    first = None if output is None else read_check(output)
    if first is not None and (first.problems or not first.clean):
        check, _ = answer_of(lambda: read_check(needed_output(evidence, Step.FS_CHECK)))
        healed = "; healed at mount" if check is not None and check.clean else ""
        reason = f"{Step.FS_FIRST_CHECK}: {first.summary}{healed}"
        yield PartFinding(verdict=Verdict.REPAIRED, reasons=(reason,))


def _beside_unread_mount(evidence: Evidence, read_check: ReadCheck) -> Iterator[PartFinding]:
    """The errors that a check found although it is not known how the mount before it ended.

    It had hung, or the unmount after it worked: the check did not look at a mounted filesystem.
    """
    tried, output = evidence.output(Step.FS_MOUNT), evidence.output(Step.FS_CHECK)
    mount, _ = answer_of(lambda: parse_mount(needed_output(evidence, Step.FS_MOUNT)))
    if mount is not None or output is None:
        return
    if tried is None or tried.exit_code is not None:
        _need_unmounted(evidence, Step.FS_UMOUNT)
    check = read_check(output)
    if not (check.clean or check.journal_dirty):
        reasons = _quote(Step.FS_CHECK, check)
        yield PartFinding(verdict=Verdict.REPAIRED, summary=check.summary, reasons=reasons)


def _repair_said(output: ToolOutput, read_check: ReadCheck) -> FsckResult:
    """A repair's words to quote, also unknown ones; raises `DidNotWork`."""
    try:
        return read_check(output)
    except DidNotWork:
        raise
    except UnreadableError as error:
        return FsckResult(clean=False, gave_up=True, problems=(str(error),))


def _unrepairable(summary: str, reasons: tuple[str, ...] = ()) -> PartFinding:
    return PartFinding(
        verdict=Verdict.UNREPAIRABLE, summary=summary, repaired=True, reasons=reasons
    )


def _replayed(evidence: Evidence) -> str:
    log = evidence.output(Step.CHECK_DMESG)
    return ", journal replayed" if log is not None and read_kernel_log(log).journal_replayed else ""


def _bad_copies(evidence: Evidence) -> Iterator[PartFinding]:
    """The bad copies in the checking client's kernel log: the kernel may have mended them by then."""
    log = evidence.output(Step.CHECK_DMESG)
    lines = () if log is None else read_kernel_log(log).bad_copies[:_PROBLEMS_MAX]
    if lines:
        reasons = tuple(f"{Step.CHECK_DMESG}: {line}" for line in lines)
        yield PartFinding(verdict=Verdict.REPAIRED, reasons=reasons)


def needed_output(evidence: Evidence, step: Step) -> ToolOutput:
    """The last output of a step; raises `UnreadableError` if it was never run."""
    output = evidence.output(step)
    if output is None:
        raise UnreadableError(f"{step} was never run, and the verdict depends on it")
    return output


def _need_unmounted(evidence: Evidence, step: Step) -> None:
    output = evidence.output(step)
    if output is None or output.exit_code != 0:
        how = "was never run" if output is None else f"failed (exit {output.exit_code})"
        raise UnreadableError(f"{step} {how}: it was checked while still mounted")


def _after_a_mount(check: FsckResult) -> FsckResult:
    """A journal that is dirty after a mount and its end: the filesystem shut itself down in between."""
    if not check.journal_dirty:
        return check
    why = "its journal is dirty although it was mounted and unmounted"
    return replace(check, clean=False, problems=(why, *check.problems))


def _quote(step: Step, check: FsckResult) -> tuple[str, ...]:
    return tuple(f"{step}: {problem}" for problem in check.problems[:_PROBLEMS_MAX])
