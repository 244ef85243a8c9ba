"""The kernel log of the NAS that came back: ZFS's messages about itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import lines_of

_PANIC = re.compile(
    r"(VERIFY\w*\(.*\) failed|PANIC at \S+:\d+:|SPLError: .*PANIC|PANIC: |"
    r"Pool '.*' has encountered an uncorrectable I/O failure and has been suspended).*"
)
"""OpenZFS `include/os/linux/spl/sys/debug.h` and `module/os/linux/spl/spl-err.c` (`vcmn_err` has
`PANIC: `, for `zfs_panic_recover` too): the thread that prints it stops for ever. And
`module/zfs/zio.c`, `zio_suspend`: every thread that waits for the pool stops, too."""
_REPLAY = re.compile(
    r"(ZFS replay transaction error \d+|ZFS read log block error \d+|"
    r"zil_parse: lr_t (overrun|has an invalid reclen)|can't open objset (for )?\d+, error \d+).*"
)
"""OpenZFS `module/zfs/zil.c`: something acknowledged was not replayed. A record could not be
replayed (`zil_replay_error`). Or a claimed block was unreadable or holds no record (`zil_parse`).
The log's end is a block that is not there, and has no message. Or the log of a dataset could not be
claimed at all (`zil_claim`) or checked (`zil_check_log_chain`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NasLog:
    """Lines in which ZFS gave up, and those in which it could not replay its intent log."""

    panics: tuple[str, ...] = ()
    replay_errors: tuple[str, ...] = ()


def read_nas_log(output: ToolOutput) -> NasLog:
    """The lines of a NAS's `dmesg` about this, as far as it goes; never raises."""
    return read_nas_lines(lines_of(output))


def read_nas_lines(lines: list[str]) -> NasLog:
    """The same for lines."""
    return NasLog(panics=_found(_PANIC, lines), replay_errors=_found(_REPLAY, lines))


def _found(pattern: re.Pattern[str], lines: list[str]) -> tuple[str, ...]:
    found = (match[0] for line in lines if (match := pattern.search(line)))
    return tuple(dict.fromkeys(found))
