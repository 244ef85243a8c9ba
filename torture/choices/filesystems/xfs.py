"""XFS, with its defaults (xfs_repair(8)).

`xfs_repair`, with -n or without: text and exit code -> `FsckResult`.

With -n it returns 1 on corruption, else 0. Without -n it returns 0 after a repair, 1 when it could
not repair, 2 when the log is dirty. A mount must replay a dirty log (xfs_repair(8)). On a dirty log
-n reports false errors. The closing proofs are `No modify flag set, skipping filesystem flush and
exiting.` and `done`.
"""

from __future__ import annotations

import re

from torture.choices.filesystems.protocol import DEVICE, MOUNT_POINT, Filesystem
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import (
    FsckResult,
    exit_code_of,
    has_crashed,
    lines_of,
    refuse_codes_beyond,
    refuse_faults_of_ours,
    unreadable,
)

_LOOKED = "No modify flag set, skipping filesystem flush and exiting."
_MENDED = "done"
_DIRTY_LOG_CODE = 2
_DIRTY_LOG = "The filesystem has valuable metadata changes in a log"
_GAVE_UP = (
    "fatal error -- couldn't map inode",
    "Cannot proceed further in no_modify mode",
    "could not find valid secondary superblock",
    "Sorry, could not",
    "The log head and/or tail cannot be discovered",
)
_PROBLEM = re.compile(
    r"\bbad\b|corrupt|would have|would be|would reset|would clear|mismatch|counted|inconsistent|"
    r"\bcleared\b|disconnected|out of range|invalid|unknown|fatal|missing|resetting|failed|ALERT|"
    r"duplicate extent|claims|nlinks|Sorry|no_modify mode",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(- |Phase \d|No modify flag set|Repair may fail if there is a sector)")


def parse_xfs_repair(output: ToolOutput) -> FsckResult:
    """The findings of xfs_repair; raises `UnreadableError` when the output is ambiguous."""
    code = exit_code_of(output)
    lines = lines_of(output)
    problems = tuple(line for line in lines if _PROBLEM.search(line) and not _HEADING.match(line))
    dirty = any(_DIRTY_LOG in line for line in lines)
    if has_crashed(code):
        return FsckResult(clean=False, problems=problems, gave_up=True, journal_dirty=dirty)
    finished = _LOOKED in lines or lines[-1:] == [_MENDED]
    if code == 0:
        if not finished:
            raise unreadable(output, "it lacks its closing line")
        if _LOOKED in lines and problems and not dirty:
            raise unreadable(output, f"it reports a sound filesystem, yet prints {problems[0]!r}")
        return FsckResult(clean=True, problems=problems, journal_dirty=dirty)
    refuse_codes_beyond(output, (1, _DIRTY_LOG_CODE))
    errors = [line for line in problems if not any(reason in line for reason in _GAVE_UP)]
    refuse_faults_of_ours(output, errors=() if dirty else errors)
    if code == _DIRTY_LOG_CODE and dirty:
        return FsckResult(clean=False, problems=problems, gave_up=True, journal_dirty=True)
    if any(reason in line for line in lines for reason in _GAVE_UP):
        return FsckResult(clean=False, problems=problems, gave_up=True, journal_dirty=dirty)
    if not finished or not problems:
        raise unreadable(output, "it lacks its closing line, or shows no error")
    return FsckResult(clean=False, problems=problems, journal_dirty=dirty)


CHOICE: Choice[Filesystem] = Choice(
    name="xfs",
    value=Filesystem(
        make=("mkfs.xfs", "-q", "-f", DEVICE),
        mount=("mount", "-t", "xfs", DEVICE, MOUNT_POINT),
        discarding=("mount", "-o", "remount,discard", MOUNT_POINT),
        # no first check: xfs_repair -n does not replay the log, and reports false damage
        check=("xfs_repair", "-n", DEVICE),
        # zero the log (-L) only if the first refuses because of it
        repairs=(("xfs_repair", DEVICE), ("xfs_repair", "-L", DEVICE)),
        read_check=parse_xfs_repair,
        root_words="rootfstype=xfs",
    ),
    words="xfs",
    joins=frozenset({Sweep.LOG_DEVICES_AND_FILESYSTEMS, Sweep.BOOT_FILESYSTEMS}),
    place=2,
)
