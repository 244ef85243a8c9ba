"""The results of any filesystem checker, and of any attempt, in one shape each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.guarantee import DidNotWork, UnreadableError

_CRASH_SIGNALS = (4, 6, 7, 8, 11)
"""SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: the tool itself gave up."""
_SHELL_SIGNAL_BASE = 128

_NOT_ABOUT_THE_DATA = (
    "command not found",
    "not found in $path",
    "out of memory",
    "cannot allocate memory",
)
"""A tool with these words could not do its work for a reason of ours."""
_ABOUT_THE_DEVICE = (
    "no such file or directory",
    "no such device",
    "permission denied",
    "operation not permitted",
    "device or resource busy",
    "is mounted",
    "is currently mounted",
    "contains a mounted",
    "is in use",
)
"""Nor could a tool with these words about the device. The same words may be about its content:
xfs_repair's `imap claims a free inode 262976 is in use`, the ENOENT of a tree's item."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FsckResult:
    """One run of a checker.

    `clean`: it vouches for the filesystem. `problems` are its own lines. It may vouch in spite of
    them: a bad copy may have a good one beside it. `journal_dirty`: it looked past a journal that
    was not replayed, so its word is worth little. `gave_up`: it could not finish.
    """

    clean: bool
    problems: tuple[str, ...] = ()
    gave_up: bool = False
    journal_dirty: bool = False
    journal_replayed: bool = False

    @property
    def summary(self) -> str:
        """In a few words, with the first problem."""
        if self.clean and not self.problems:
            return "clean"
        head = "gave up" if self.gave_up else "clean, but" if self.clean else "errors"
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return f"{head}: {self.problems[0]}{more}" if self.problems else head


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """An attempt to import, mount or boot. `reason`: its message if it failed, or its cost."""

    is_done: bool
    reason: str = ""


def exit_code_of(output: ToolOutput) -> int:
    """The exit code; raises `DidNotWork` when the deadline ended the tool."""
    if output.exit_code is None:
        raise DidNotWork(f"{output.step}: {output.name} did not end within its deadline")
    return output.exit_code


def has_crashed(exit_code: int) -> bool:
    """Whether a signal of its own making ended the tool (the shell's convention: 128 + signal)."""
    return exit_code - _SHELL_SIGNAL_BASE in _CRASH_SIGNALS


def refuse_faults_of_ours(output: ToolOutput, *, errors: Iterable[str] = ()) -> None:
    """Raise `DidNotWork` when a failed tool says that it could not work at all.

    `errors` are its lines about errors in the filesystem: with one of them it has worked, whatever it
    lacked later. Its device is its last argument, as with all of them.
    """
    has_worked = any(
        not any(words in line.lower() for words in _NOT_ABOUT_THE_DATA) for line in errors
    )
    ours = () if has_worked else _NOT_ABOUT_THE_DATA
    device = output.argv[-1]
    every = f"{output.stdout}\n{output.stderr}".lower()
    if not any(phrase in every for phrase in (*_NOT_ABOUT_THE_DATA, *_ABOUT_THE_DEVICE)):
        return  # a broken filesystem has thousands of lines
    for line in lines_of(output):
        phrases = ours + (_ABOUT_THE_DEVICE if device in line else ())
        if any(phrase in line.lower() for phrase in phrases):
            raise DidNotWork(f"{output.step}: {output.name} could not work: {line}")


def unreadable(output: ToolOutput, why: str) -> UnreadableError:
    """The error for output that proves nothing."""
    return UnreadableError(_sentence(output, why))


def _sentence(output: ToolOutput, why: str) -> str:
    return f"{output.step}: {output.name} (exit {output.exit_code}): {why}"


def refuse_codes_beyond(output: ToolOutput, known: tuple[int, ...]) -> None:
    """Raise `DidNotWork` for an exit code that the tool lacks: something ended it."""
    if output.exit_code not in known:
        raise DidNotWork(_sentence(output, "not one of its exit codes"))


def first_whole_line(stream: str, start: str) -> str | None:
    """The first line with this start and an end: a cut-off line says too little."""
    lines = stream.splitlines(keepends=True)
    return next((x.strip() for x in lines if x.startswith(start) and x.endswith("\n")), None)


def lines_of(output: ToolOutput) -> list[str]:
    """Both streams' lines, stripped, without the empty ones."""
    lines = (*output.stdout.splitlines(), *output.stderr.splitlines())
    return [line.strip() for line in lines if line.strip()]
