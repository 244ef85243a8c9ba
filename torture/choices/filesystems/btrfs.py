"""btrfs, with its defaults: metadata is duplicated (btrfs-check(8)).

`btrfs check`, read-only or repairing: text and exit code -> `FsckResult`.

The exit code is only zero or not (btrfs-check(8)), so the text decides. The closing proof is the
line `found <n> bytes used, no error found` or `... error(s) found` (btrfs-progs `check/main.c`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from torture.choices.filesystems.protocol import DEVICE, MOUNT_POINT, Filesystem
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import EVERY_SWEEP, HYPERVISOR_SWEEPS, OUTAGE_SWEEPS
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

_NO_ERROR = re.compile(r"^found \d+ bytes used, no error found$")
_ERRORS = re.compile(r"^found \d+ bytes used, error\(s\) found$")
_PROBLEM = re.compile(
    r"ERROR|corrupt|verify failed|mismatch|transid|bad |invalid|missing|errors? \d+|errors found|"
    r"not uptodate|unresolved|backref|wanted|ref mismatch",
    re.IGNORECASE,
)
_HOLE_IN_LOG = re.compile(r"^ERROR: csum missing in log \(.* address 0x([0-9a-f]+) length \d+\)$")
_NO_DATA_BELOW = 1 << 20
"""btrfs gives data no address in the first MiB (`BTRFS_BLOCK_RESERVED_1M_FOR_SUPER`)."""
_END_OF_LOG = "ERROR: errors found in log"
_GAVE_UP = (
    "cannot open file system",
    "No valid Btrfs found",
    "unable to check the file",
    "corrupted, unable to continue",
    "could not setup",
    "attempt to start transaction over already running one",
)
_FOUND = re.compile(
    r"(parent transid|checksum) verify failed on \d+|"
    r"\d+, bytenr mismatch, want=\d+|child eb corrupted: parent bytenr=\d+|"
    r"(root|inode) \d+ .*errors [0-9a-f]+|ref mismatch on \[\d+ \d+\]|"
    r"backpointer mismatch on \[\d+ \d+\]|csum exists for \d+-\d+ but there is no extent record"
)
"""Lines about one item, of btrfs-progs `check/main.c` and `kernel-shared/disk-io.c`. Others may only be
the consequence of a fault elsewhere."""
_BENIGN = ("[", "found ", "No device size related problem found", "enabling repair mode")
"""Headings (`[1/7] checking root items`) and the closing line itself."""


# a broken tree fills thousands of lines, and one judgement parses them several times
@lru_cache(maxsize=4)
def parse_btrfs_check(output: ToolOutput) -> FsckResult:
    """The findings of btrfs check; raises `UnreadableError` when the output is ambiguous."""
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
    holes = set(filter(_is_hole_in_log, problems))
    errors = [line for line in problems if _FOUND.search(line)]
    refuse_faults_of_ours(output, errors=errors)
    if vouches:
        raise unreadable(output, "it reports a sound filesystem, yet fails")
    if any(reason in line for line in lines for reason in _GAVE_UP):
        return FsckResult(clean=False, problems=problems, gave_up=True)
    if not errors and not any(_ERRORS.match(line) for line in lines):
        raise unreadable(output, "it lacks its closing line")
    if holes and set(problems) == holes | {_END_OF_LOG}:
        return FsckResult(clean=True)
    return FsckResult(clean=False, problems=problems)


def _is_hole_in_log(problem: str) -> bool:
    """Whether btrfs-progs takes a hole for data without checksums.

    The hole was logged, and then overwritten in part. Its address is 0, to which btrfs-progs up to 6.14
    adds the hole's offset (`check/main.c`, `check_log_root`).
    """
    hole = _HOLE_IN_LOG.match(problem)
    return hole is not None and int(hole[1], 16) < _NO_DATA_BELOW


_CHECK = ("btrfs", "check", "--readonly", DEVICE)

CHOICE: Choice[Filesystem] = Choice(
    name="btrfs",
    value=Filesystem(
        make=("mkfs.btrfs", "--quiet", "--force", DEVICE),
        mount=("mount", "-t", "btrfs", DEVICE, MOUNT_POINT),
        # at each commit, and not some time after it (btrfs(5), `discard`)
        discarding=("mount", "-o", "remount,discard=sync", MOUNT_POINT),
        # `-r`: reports a bad copy beside a good one, and leaves it (btrfs-scrub(8))
        scrub=("btrfs", "scrub", "start", "-B", "-r", MOUNT_POINT),
        # its trees are whole without the log, and a mount may repair them
        first_check=_CHECK,
        check=_CHECK,
        # `yes` allows it to clear an unreadable log: it asks for that even without a terminal, and
        # ends (btrfs-progs `check/main.c`)
        repairs=(("sh", "-c", 'yes | btrfs check --repair --force "$1"', "repair", DEVICE),),
        read_check=parse_btrfs_check,
        root_words="rootfstype=btrfs",
    ),
    words="btrfs",
    joins=EVERY_SWEEP - HYPERVISOR_SWEEPS - OUTAGE_SWEEPS,
    place=0,
)
