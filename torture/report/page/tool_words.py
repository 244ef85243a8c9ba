"""Excerpts of the tools' output after a cut, shortened for the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.evidence.folder import Step, ToolOutput, load_evidence

_CHARACTERS_MAX = 1600
_NOTEWORTHY = (
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
"""The steps that readers look for, in their order."""
_KERNEL = (Step.CLIENT_DMESG, Step.CHECK_DMESG)
_KERNEL_LINES_MAX = 8
_COMPLAINTS = ("error", "fail", "corrupt", "warn")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolExcerpt:
    """One tool's command line, its exit code (None: it did not end), and the end of its output."""

    command: str
    exit_code: int | None
    text: str


def words_of(evidence: Path) -> tuple[ToolExcerpt, ...]:
    """The noteworthy tools of a trial's folder that complained or checked; none if it is unreadable."""
    try:
        tools = load_evidence(evidence).tools
    except (HarnessError, OSError):
        return ()
    found = [
        ToolExcerpt(command=" ".join(tool.argv), exit_code=tool.exit_code, text=_end_of(tool))
        for tool in tools
        if tool.step in _NOTEWORTHY and (tool.exit_code != 0 or tool.step == Step.FS_CHECK)
    ]
    for tool in tools:
        if tool.step in _KERNEL and (complaints := _complaints(tool)):
            found.append(ToolExcerpt(command=f"dmesg ({tool.step})", exit_code=0, text=complaints))
    return tuple(found)


def _end_of(tool: ToolOutput) -> str:
    text = "\n".join(part.strip() for part in (tool.stdout, tool.stderr) if part.strip())
    return text if len(text) <= _CHARACTERS_MAX else f"...{text[-_CHARACTERS_MAX:]}"


def _complaints(tool: ToolOutput) -> str:
    """The first lines in which a guest's kernel reports a problem of a filesystem."""
    lines = [
        line
        for line in tool.stdout.splitlines()
        if any(name in line for name in ("BTRFS", "EXT4-fs", "XFS"))
        and any(complaint in line.lower() for complaint in _COMPLAINTS)
    ]
    return "\n".join(lines[:_KERNEL_LINES_MAX])[:_CHARACTERS_MAX]
