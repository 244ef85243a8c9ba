"""What the tools said after a cut, in their own words, cut to what a page has room for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.evidence.folder import Step, ToolOutput, load_evidence

_CHARACTERS_MAX = 1600
_TELLING = (
    Step.POOL_IMPORT,
    Step.POOL_IMPORT_M,
    Step.POOL_IMPORT_REWIND,
    Step.BOOT_FSCK,
    Step.BOOT,
    Step.FS_MOUNT,
    Step.FS_CHECK,
    Step.FS_REPAIR,
    Step.FS_MOUNT_AFTER_REPAIR,
    Step.BOOT_AFTER_REPAIR,
)
"""What people look for, in the order in which it was run."""
_KERNEL = (Step.CLIENT_DMESG, Step.CHECK_DMESG)
_KERNEL_LINES_MAX = 8
_COMPLAINTS = ("error", "fail", "corrupt", "warn")


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """One tool's: the command line, its exit code (None: it did not end), and the end of its output."""

    command: str
    exit_code: int | None
    text: str


def words_of(evidence: Path) -> tuple[Words, ...]:
    """The telling tools of a trial's folder that complained or checked; none where it cannot be read."""
    try:
        tools = load_evidence(evidence).tools
    except (HarnessError, OSError):
        return ()
    found = [
        Words(command=" ".join(tool.argv), exit_code=tool.exit_code, text=_end_of(tool))
        for tool in tools
        if tool.step in _TELLING and (tool.exit_code != 0 or tool.step == Step.FS_CHECK)
    ]
    for tool in tools:
        if tool.step in _KERNEL and (complaints := _complaints(tool)):
            found.append(Words(command=f"dmesg ({tool.step})", exit_code=0, text=complaints))
    return tuple(found)


def _end_of(tool: ToolOutput) -> str:
    text = "\n".join(part.strip() for part in (tool.stdout, tool.stderr) if part.strip())
    return text if len(text) <= _CHARACTERS_MAX else f"...{text[-_CHARACTERS_MAX:]}"


def _complaints(tool: ToolOutput) -> str:
    """The first lines in which a guest's kernel complains of a filesystem."""
    lines = [
        line
        for line in tool.stdout.splitlines()
        if any(name in line for name in ("BTRFS", "EXT4-fs", "XFS"))
        and any(complaint in line.lower() for complaint in _COMPLAINTS)
    ]
    return "\n".join(lines[:_KERNEL_LINES_MAX])[:_CHARACTERS_MAX]
