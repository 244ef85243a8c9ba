"""ext4, with its defaults, data=ordered, and with data=journal (e2fsck(8), ext4(5)).

`e2fsck -f -n` and `e2fsck -f -y`: text and exit code -> `FsckResult`.

The exit code is a sum of bits (e2fsck(8)). They mean 1 corrected, 2 corrected and reboot, 4 left
uncorrected, 8 operational error, 16 usage, 32 cancelled, 128 library error. A recovered journal
alone gives 0.
`-n` on a dirty journal ignores the journal and may give 0. The closing proof is the last line,
`<device>: <used>/<all> files (...), <used>/<all> blocks`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from torture.choices.filesystems.protocol import DEVICE, MOUNT_POINT, Filesystem
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import HYPERVISOR_SWEEPS, OUTAGE_SWEEPS, Sweep
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import (
    FsckResult,
    exit_code_of,
    has_crashed,
    lines_of,
    refuse_faults_of_ours,
    unreadable,
)

_UNCORRECTED, _OPERATIONAL_ERROR, _OURS = 4, 8, 16 | 32 | 64 | 128
_CLOSING = re.compile(r"^\S+: \d+/\d+ files \(.*\), \d+/\d+ blocks$")
_PASS = re.compile(r"^Pass ([1-5])[A-E]?: \w+")
_PASSES = frozenset("12345")
_VERSION = re.compile(r"^e2fsck \d+\.\d+\S* \(.*\)$")
_SKIPPED = "skipping journal recovery because doing a read-only filesystem check"
_RECOVERED = re.compile(r"^\S+: recovering journal$")
_OPTIMISATION = re.compile(r"^Inode \d+ extent tree .*could be (shorter|narrower)\..*$")
_MODIFIED = "FILE SYSTEM WAS MODIFIED"
_BENIGN = (_CLOSING, _PASS, _VERSION, _RECOVERED, _OPTIMISATION)
_ASKED = re.compile(r"(\? (no|yes)|(FIXED|IGNORED|CLEARED)\.)$")
"""An error of the filesystem's, and its fate (e2fsprogs `e2fsck/problem.c`, `fix_problem`)."""
_GAVE_UP = (
    "Bad magic number in super-block",
    "The superblock could not be read",
    "superblock is corrupt",
    "Corruption found in superblock",
    "e2fsck: aborted",
    "Cannot proceed with file system check",
)


def parse_e2fsck(output: ToolOutput) -> FsckResult:
    """The findings of e2fsck; raises `UnreadableError` when the output is ambiguous."""
    code = exit_code_of(output)
    lines = lines_of(output)
    problems = tuple(line for line in lines if _is_problem(line))
    if has_crashed(code):
        return FsckResult(clean=False, problems=problems, gave_up=True)
    if code & _OURS:
        raise unreadable(output, "a usage error, or it was cancelled")
    dirty = any(_SKIPPED in line for line in lines)
    errors = [line for line in problems if _ASKED.search(line)]
    if code & _OPERATIONAL_ERROR:
        refuse_faults_of_ours(output, errors=() if dirty else errors)
        if not errors and not any(reason in line for line in lines for reason in _GAVE_UP):
            raise unreadable(output, "an operational error of unknown cause")
        return FsckResult(clean=False, problems=problems, gave_up=True, journal_dirty=dirty)
    if code & _UNCORRECTED and errors and not dirty:
        return FsckResult(clean=False, problems=problems)
    if not any(_CLOSING.match(line) for line in lines):
        raise unreadable(output, "it lacks its closing line")
    passes = {match[1] for line in lines if (match := _PASS.match(line))}
    if passes != _PASSES:
        raise unreadable(output, f"passes {sorted(_PASSES - passes)} are missing")
    if code == 0 and problems:
        raise unreadable(output, f"it reports a sound filesystem, yet prints {problems[0]!r}")
    if code & _UNCORRECTED and not problems:
        raise unreadable(output, "it exits with uncorrected errors, but prints none")
    return FsckResult(
        clean=code == 0,
        problems=problems,
        journal_dirty=dirty,
        journal_replayed=any(_RECOVERED.match(line) for line in lines),
    )


def _is_problem(line: str) -> bool:
    if _SKIPPED in line or _MODIFIED in line:
        return False
    return not any(pattern.match(line) for pattern in _BENIGN)


_EXT4 = Filesystem(
    # lazy initialisation would write in the background of the first minutes
    make=("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", DEVICE),
    mount=("mount", "-t", "ext4", DEVICE, MOUNT_POINT),
    discarding=("mount", "-o", "remount,discard", MOUNT_POINT),
    # no first check: e2fsck -n ignores the journal before its replay, and reports false damage
    check=("e2fsck", "-f", "-n", DEVICE),
    repairs=(("e2fsck", "-f", "-y", DEVICE),),
    read_check=parse_e2fsck,
    root_words="rootfstype=ext4",
)

CHOICES: tuple[Choice[Filesystem], ...] = (
    Choice(
        name="ext4",
        value=_EXT4,
        words="ext4",
        joins=HYPERVISOR_SWEEPS
        | OUTAGE_SWEEPS
        | {Sweep.USUAL, Sweep.LOG_DEVICES_AND_FILESYSTEMS, Sweep.BOOT_FILESYSTEMS},
        place=1,
    ),
    # All writes go through the journal, data too (ext4(5)). ext4 treats O_DIRECT like any other write
    # there (Linux `fs/ext4/inode.c`, `ext4_should_use_dio`). Each mount sets how data are written.
    Choice(
        name="ext4journal",
        value=replace(
            _EXT4,
            mount=("mount", "-t", "ext4", "-o", "data=journal", DEVICE, MOUNT_POINT),
            writes_once=False,
            root_words="rootfstype=ext4 rootflags=data=journal",
        ),
        words="ext4 with data=journal",
        explained="ext4 with data=journal",
        place=5,
    ),
)
