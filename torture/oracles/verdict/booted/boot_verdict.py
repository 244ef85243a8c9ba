"""Whether the VM boots again, as part of its filesystem's verdict.

A filesystem that does not mount is lost to its owner. So is a VM that does not come up, even if a
checker vouches for its filesystem. A VM that comes up after a rescue system has repaired the disk
is repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from torture.facts.evidence.folder import Evidence, Step, ToolOutput
from torture.oracles.verdict.booted.console import last_words, says_it_is_up
from torture.oracles.verdict.filesystem_verdict import FilesystemFinding, needed_output
from torture.oracles.verdict.fsck import exit_code_of, unreadable
from torture.oracles.verdict.mount import read_kernel_log
from torture.oracles.verdict.unreadable import UnreadableError
from torture.oracles.verdict.verdicts import Verdict, worst

_LEFT_BIT = 4
"""fsck(8): errors were left uncorrected. After all other codes the initrd goes on, as Debian's does."""
_USUAL = re.compile(
    r"^\S+: (recovering journal|Clearing orphaned inode .*|clean, \d+/\d+ files, \d+/\d+ blocks.*)$"
)
"""e2fsck's words for a replayed journal, and for files that were deleted while open."""
_LINES_MAX = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class BootResult:
    """Whether a VM came up, and the reason if it did not."""

    is_up: bool
    why_not: str = ""


def parse_boot(output: ToolOutput) -> BootResult:
    """Whether a VM came up; raises `UnreadableError` when the console does not show it."""
    code = exit_code_of(output)
    if code == 0:
        if not says_it_is_up(output.stdout) or output.stderr:
            raise unreadable(output, "it was reported up, but its console does not show that")
        return BootResult(is_up=True)
    if code != 1 or not output.stderr:
        raise unreadable(output, "it is not up, and the reason is missing")
    words = last_words(output.stdout)
    return BootResult(is_up=False, why_not=f"{words} ({output.stderr})" if words else output.stderr)


def with_boot(evidence: Evidence, found: FilesystemFinding) -> FilesystemFinding:
    """The filesystem's finding by a client of another root, and whether the VM boots from it.

    Raises `UnreadableError` when the evidence does not show it.
    """
    boot = parse_boot(needed_output(evidence, Step.BOOT))
    reasons = _at_boot(evidence, is_up=boot.is_up)
    if found.verdict is Verdict.UNREPAIRABLE:
        how = "boots" if boot.is_up else f"does not boot ({boot.why_not})"
        return replace(found, summary=f"{how}; {found.summary}", reasons=reasons + found.reasons)
    if boot.is_up and not found.repaired:
        verdict = worst((found.verdict, Verdict.REPAIRED if reasons else Verdict.INTACT))
        return replace(found, verdict=verdict, reasons=reasons + found.reasons)
    before = "" if boot.is_up else f"does not boot: {boot.why_not}; "
    again = parse_boot(needed_output(evidence, Step.BOOT_AFTER_REPAIR))
    if not again.is_up:
        return replace(
            found,
            verdict=Verdict.UNREPAIRABLE,
            summary=f"{before}{found.summary}; does not boot after that: {again.why_not}",
            reasons=reasons + found.reasons,
        )
    if not boot.is_up:
        reasons = (f"{Step.BOOT}: {boot.why_not}", *reasons)
    return replace(
        found,
        verdict=worst((found.verdict, Verdict.REPAIRED)),
        summary=f"{before}{found.summary}; boots then",
        reasons=reasons + found.reasons,
    )


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
