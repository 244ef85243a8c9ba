"""The client's filesystem: its own verdict, from mounts, checks and repairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torture.facts.evidence.folder import Evidence, Step, ToolOutput
from torture.oracles.verdict.fsck import FsckResult
from torture.oracles.verdict.judgement import PartFinding
from torture.oracles.verdict.mount import parse_mount, read_kernel_log
from torture.oracles.verdict.unreadable import DidNotWork, UnreadableError
from torture.oracles.verdict.verdicts import Verdict

ReadCheck = Callable[[ToolOutput], FsckResult]
"""The reader of a filesystem checker's output; raises `UnreadableError` for an unclear one."""

_PROBLEMS_MAX = 3


def judge_filesystem(evidence: Evidence, read_check: ReadCheck) -> PartFinding:
    """Score the filesystem; raises `UnreadableError` when the evidence is unclear.

    - Intact: it mounts (the journal may be replayed) and the checker vouches for it afterwards.
    - Repaired by copies: the checker, or the kernel during its read of everything, found bad copies
      beside good ones.
    - Repaired by the mount: the mount healed the problems that a look before it had found.
    - Repaired by a repair: after it the filesystem mounts and the checker vouches for it.
    - Unrepairable: otherwise, and when it does not mount and its repair does not end.

    A checker's word counts only after an unmount. A repair's word counts only as proof that it
    could work: the mount and the check after it show the result.
    """
    mount = parse_mount(needed_output(evidence, Step.FS_MOUNT))
    check: FsckResult | None = None
    reasons: list[str] = []
    if mount.is_done:
        _need_unmounted(evidence, Step.FS_UMOUNT)
        check = _after_a_mount(read_check(needed_output(evidence, Step.FS_CHECK)))
        if check.clean:
            found = _healed_at_mount(evidence, read_check) + _bad_copies(evidence)
            return PartFinding(
                verdict=Verdict.REPAIRED if check.problems or found else Verdict.INTACT,
                summary=check.summary + _replayed(evidence),
                reasons=_quote(Step.FS_CHECK, check) + found,
            )
        reasons += _quote(Step.FS_CHECK, check)
        before = check.summary
    else:
        reasons.append(f"mount: {mount.reason}")
        before = f"will not mount: {mount.reason}"
    repair_output = needed_output(evidence, Step.FS_REPAIR)
    if not mount.is_done and repair_output.exit_code is None:
        return _unrepairable(f"{before}; the repair did not end", reasons)
    repair = _repair_said(repair_output, read_check)
    again = parse_mount(needed_output(evidence, Step.FS_MOUNT_AFTER_REPAIR))
    if not again.is_done:
        reasons += _quote(Step.FS_REPAIR, repair)
        reasons.append(f"mount after the repair: {again.reason}")
        return _unrepairable(f"{before}; no repair makes it mount", reasons)
    _need_unmounted(evidence, Step.FS_UMOUNT_AFTER_REPAIR)
    after = _after_a_mount(read_check(needed_output(evidence, Step.FS_CHECK_AFTER_REPAIR)))
    if not after.clean:
        reasons += _quote(Step.FS_CHECK_AFTER_REPAIR, after)
        return _unrepairable(f"{before}; errors are left after the repair", reasons)
    return PartFinding(
        verdict=Verdict.REPAIRED,
        summary=f"{before}; repaired",
        repaired=True,
        reasons=tuple(reasons),
    )


def _repair_said(output: ToolOutput, read_check: ReadCheck) -> FsckResult:
    """A repair's words to quote, also unknown ones; raises `DidNotWork`."""
    try:
        return read_check(output)
    except DidNotWork:
        raise
    except UnreadableError as error:
        return FsckResult(clean=False, gave_up=True, problems=(str(error),))


def _unrepairable(summary: str, reasons: list[str]) -> PartFinding:
    return PartFinding(
        verdict=Verdict.UNREPAIRABLE, summary=summary, repaired=True, reasons=tuple(reasons)
    )


def _replayed(evidence: Evidence) -> str:
    log = evidence.output(Step.CHECK_DMESG)
    return ", journal replayed" if log is not None and read_kernel_log(log).journal_replayed else ""


def _healed_at_mount(evidence: Evidence, read_check: ReadCheck) -> tuple[str, ...]:
    """The problems before the mount that are gone after it; older evidence lacks a look before."""
    output = evidence.output(Step.FS_FIRST_CHECK)
    if output is None:
        return ()
    first = read_check(output)
    if first.clean and not first.problems:
        return ()
    return (f"{Step.FS_FIRST_CHECK}: {first.summary}; healed at mount",)


def _bad_copies(evidence: Evidence) -> tuple[str, ...]:
    """The bad copies in the checking client's kernel log: the kernel may have mended them by then."""
    log = evidence.output(Step.CHECK_DMESG)
    lines = () if log is None else read_kernel_log(log).bad_copies
    return tuple(f"{Step.CHECK_DMESG}: {line}" for line in lines[:_PROBLEMS_MAX])


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
