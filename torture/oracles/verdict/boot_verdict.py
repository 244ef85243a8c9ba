"""Whether the VM boots again, as part of its filesystem's verdict.

A filesystem that does not mount is lost to its owner. So is a VM that does not come up, even if a
checker vouches for its filesystem. A VM that comes up after a rescue system has repaired the disk
is repaired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from torture.facts.evidence.folder import Evidence, Step, ToolOutput
from torture.oracles.verdict.filesystem_verdict import needed_output
from torture.oracles.verdict.fsck import Attempt, exit_code_of, unreadable
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.oracles.verdict.judgement import PartFinding, all_known
from torture.oracles.verdict.mount import KERNEL_DEATH, read_kernel_log

_FSCK = re.compile(
    r"torture: fsck of (?P<device>/dev/\w+)\s*?\n(?P<said>.*?)\n"
    r"[^\n]*torture: fsck ended with (?P<code>\d+)\s",
    re.DOTALL,
)
"""`vmimages/boot/init` puts a line before fsck(8) and one after it, which has its exit code. The
kernel may write amid these lines, and a console that ends early has only some of them."""
_IS_UP = re.compile(r"torture: ready\b")
_KERNELS_CLOCK = re.compile(r"^\[ *\d+\.\d+\] ")

_INIT_ENDED = "Attempted to kill init!"


@dataclass(frozen=True, kw_only=True, slots=True)
class FsckAtBoot:
    """The messages and the exit code of fsck(8) before the mount of the root."""

    device: str
    exit_code: int
    said: str


def fsck_at_boot(console: str) -> FsckAtBoot | None:
    """The result of fsck; None if fsck did not reach its end, or its end was garbled."""
    match = _FSCK.search(console.replace("\r", ""))
    if match is None:
        return None
    return FsckAtBoot(
        device=match["device"], exit_code=int(match["code"]), said=match["said"].strip("\n")
    )


def says_it_is_up(console: str) -> bool:
    """Whether the guest announced its agent."""
    return _IS_UP.search(console) is not None


def last_words(console: str) -> str:
    """The last line before the kernel gave up, else of all; empty for an empty console."""
    death = KERNEL_DEATH.search(console)
    before = console[: death.start()].rpartition("\n")[0] if death else console
    lines = [_KERNELS_CLOCK.sub("", line).strip() for line in before.splitlines()]
    return next((line for line in reversed(lines) if line), "")


def end_of_console(console: str, *, lines: int) -> list[str]:
    """The lines with the cause of a guest's end: those of the kernel's death, or the last ones.

    A kernel that dies with its process 1 (Linux kernel/exit.c, do_exit) does not know the cause.
    Then as many lines before its death come first.
    """
    death = KERNEL_DEATH.search(console)
    if death is None:
        return console.splitlines()[-lines:]
    before, after = console[: death.start()], console[death.start() :].splitlines()[:lines]
    if _INIT_ENDED not in after[0]:
        return after
    return [*before.rpartition("\n")[0].splitlines()[-lines:], *after]


_LEFT_BIT = 4
"""fsck(8): errors were left uncorrected. After all other codes the initrd goes on, as Debian's does."""
_USUAL = re.compile(
    r"^\S+: (recovering journal|Clearing orphaned inode .*|clean, \d+/\d+ files, \d+/\d+ blocks.*)$"
)
"""e2fsck's words for a replayed journal, and for files that were deleted while open."""
_LINES_MAX = 3


def parse_boot(output: ToolOutput) -> Attempt:
    """Whether a VM came up; raises `UnreadableError` when the console does not show it."""
    code = exit_code_of(output)
    if code == 0:
        if not says_it_is_up(output.stdout) or output.stderr:
            raise unreadable(output, "it was reported up, but its console does not show that")
        return Attempt(is_done=True)
    if code != 1 or not output.stderr:
        raise unreadable(output, "it is not up, and the reason is missing")
    words = last_words(output.stdout)
    return Attempt(is_done=False, reason=f"{words} ({output.stderr})" if words else output.stderr)


def with_boot(evidence: Evidence, found: PartFinding) -> PartFinding:
    """The filesystem's finding by a client of another root, and whether the VM boots from it."""
    known = all_known(_boots(evidence, found), [replace(found, summary="", repaired=False)])
    return replace(known, summary=known.summary or found.summary, repaired=found.repaired)


def _boots(evidence: Evidence, found: PartFinding) -> Iterator[PartFinding]:
    """The VM's boot, and the one after a repair if one was needed; raises `UnreadableError`."""
    boot = parse_boot(needed_output(evidence, Step.BOOT))
    reasons, words = _at_boot(evidence, is_up=boot.is_done), found.summary
    if found.verdict is Verdict.UNREPAIRABLE:
        how = "boots" if boot.is_done else f"does not boot ({boot.reason})"
        yield PartFinding(verdict=found.verdict, summary=f"{how}; {words}", reasons=reasons)
        return
    if boot.is_done and not found.repaired:
        verdict = Verdict.REPAIRED if reasons else Verdict.INTACT
        yield PartFinding(verdict=verdict, summary=words, reasons=reasons)
        return
    before = "" if boot.is_done else f"does not boot: {boot.reason}; "
    at_first = () if boot.is_done else (f"{Step.BOOT}: {boot.reason}",)
    known = PartFinding(verdict=Verdict.REPAIRED, summary=before + words, reasons=reasons)
    yield known
    again = parse_boot(needed_output(evidence, Step.BOOT_AFTER_REPAIR))
    if not again.is_done:
        failed = f"{known.summary}; does not boot after that: {again.reason}"
        yield PartFinding(verdict=Verdict.UNREPAIRABLE, summary=failed)
        return
    yield replace(known, summary=f"{known.summary}; boots then", reasons=(*at_first, *reasons))


def _at_boot(evidence: Evidence, *, is_up: bool) -> tuple[str, ...]:
    """The repairs of fsck and of the kernel in the VM that came up, in their own words."""
    fsck = evidence.output(Step.BOOT_FSCK)
    if fsck is None:
        if is_up:
            raise UnreadableError(f"{Step.BOOT_FSCK} was never run, yet the VM came up")
        return ()
    code = exit_code_of(fsck)
    if code & _LEFT_BIT and is_up:
        raise unreadable(fsck, "it left errors, yet the VM came up")
    lines = [line.strip() for line in fsck.stdout.splitlines() if line.strip()]
    reported = [line for line in lines if not _USUAL.match(line) and not line.endswith(":")]
    if code and not reported and not (code == 1 and lines):
        reported = [f"it returned {code}"]
    found = [f"{Step.BOOT_FSCK}: {line}" for line in reported[:_LINES_MAX]] if code else []
    log = evidence.output(Step.BOOT_DMESG)
    copies = () if log is None else read_kernel_log(log).bad_copies[:_LINES_MAX]
    return (*found, *(f"{Step.BOOT_DMESG}: {line}" for line in copies))
