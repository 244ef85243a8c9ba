"""`btrfs check`, read-only or repairing: text and exit code -> `FsckResult`.

The exit code is only zero or not (btrfs-check(8)), so the text decides. The closing proof is the
line `found <n> bytes used, no error found` or `... error(s) found` (btrfs-progs `check/main.c`).
"""

from __future__ import annotations

import re

from torture.evidence.folder import ToolOutput
from torture.verdict.fsck import (
    FsckResult,
    exit_code_of,
    has_crashed,
    lines_of,
    refuse_codes_beyond,
    refuse_faults_of_ours,
    unreadable,
)

_NO_ERROR = re.compile(r"^found \d+ bytes used, no error found$")
_ERRORS = re.compile(r"^found \d+ bytes used, error\(s\) found$")
_PROBLEM = re.compile(
    r"ERROR|corrupt|verify failed|mismatch|transid|bad |invalid|missing|errors? \d+|errors found|"
    r"not uptodate|unresolved|backref|wanted|ref mismatch",
    re.IGNORECASE,
)
_GAVE_UP = (
    "cannot open file system",
    "No valid Btrfs found",
    "unable to check the file system",
    "could not setup",
    "attempt to start transaction over already running one",
)
_BENIGN = ("[", "found ", "No device size related problem found", "enabling repair mode")
"""Headings (`[1/7] checking root items`) and the closing line itself."""


def parse_btrfs_check(output: ToolOutput) -> FsckResult:
    """What btrfs check found; raises `UnreadableError` when that cannot be told."""
    code = exit_code_of(output)
    lines = lines_of(output)
    problems = tuple(
        line for line in lines if _PROBLEM.search(line) and not line.startswith(_BENIGN)
    )
    vouches = any(_NO_ERROR.match(line) for line in lines)
    if code == 0:
        if not vouches:
            raise unreadable(output, "it lacks its closing line")
        return FsckResult(clean=True, problems=problems)
    if has_crashed(code):
        return FsckResult(clean=False, problems=problems, gave_up=True)
    refuse_codes_beyond(output, (1,))
    refuse_faults_of_ours(output)
    if vouches:
        raise unreadable(output, "it vouches for the filesystem, yet fails")
    if any(reason in line for line in lines for reason in _GAVE_UP):
        return FsckResult(clean=False, problems=problems, gave_up=True)
    if not any(_ERRORS.match(line) for line in lines):
        raise unreadable(output, "it lacks its closing line")
    return FsckResult(clean=False, problems=problems)
