"""The console of a VM that boots from the disk: fsck's messages, and the last message.

`vmimages/boot/init` puts a line before fsck(8) and one after it, which has its exit code. The
kernel may write amid these lines, and a console that ends early has only some of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FSCK = re.compile(
    r"torture: fsck of (?P<device>/dev/\w+)\s*?\n(?P<said>.*?)\n"
    r"[^\n]*torture: fsck ended with (?P<code>\d+)\s",
    re.DOTALL,
)
_IS_UP = re.compile(r"torture: ready\b")
_KERNELS_CLOCK = re.compile(r"^\[ *\d+\.\d+\] ")

KERNEL_DEATH = re.compile(r"Kernel panic|Oops: |BUG: (?!soft lockup|workqueue lockup)")
"""A kernel's words for its own death. A lockup that a watchdog reports does not count (Linux
kernel/watchdog.c, kernel/workqueue.c). The guest of a host that stood still for 20 s reports it,
too, and goes on."""

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
