"""Excerpts of a cut's evidence: its timeline, its last acknowledgements, and its tools' output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.evidence.folder import LEDGER, Step, ToolOutput, load_evidence
from torture.facts.evidence.ledger import Begin, Done
from torture.records.record.trials import TrialRecord

_LEDGER_BYTES_MAX = 8 * 1024**2
_TICKS_MAX = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A stage of the trial, and its share of the trial's time (0 to 1)."""

    name: str
    duration_ms: int
    share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledgement:
    """The acknowledgement of a durable operation.

    It has its time before the cut, and whether the VM rolled back beyond it.
    """

    before_cut_ms: float
    is_gone: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """The stages, and the acknowledgements before the cut, in order; none without a ledger."""

    stages: tuple[Stage, ...]
    acknowledged: tuple[Acknowledgement, ...]
    load_ms: float
    """From the first of these acknowledgements to the cut."""
    rollback_ms: float | None


def timeline_of(record: TrialRecord, evidence: Path | None) -> Timeline:
    """The timeline of a trial, from its record and the evidence that is left."""
    total_ms = sum(record.timings.values())
    stages = tuple(
        Stage(name=name, duration_ms=ms, share=ms / total_ms)
        for name, ms in record.timings.items()
        if total_ms > 0
    )
    acknowledged = (
        () if evidence is None else _acknowledgements(record, evidence / LEDGER)[-_TICKS_MAX:]
    )
    return Timeline(
        stages=stages,
        acknowledged=acknowledged,
        load_ms=max(
            (acknowledgement.before_cut_ms for acknowledgement in acknowledged), default=0.0
        ),
        rollback_ms=record.rollback_ms,
    )


def _acknowledgements(record: TrialRecord, file: Path) -> tuple[Acknowledgement, ...]:
    """The acknowledgements before the cut; none when the ledger is missing or has no cut."""
    try:
        with file.open("rb") as ledger_file:
            ledger = record.cut.confirmed.ledger_of(ledger_file.read(_LEDGER_BYTES_MAX))
    except OSError:
        return ()
    if (cut_ms := ledger.cut_ms) is None:
        return ()
    durable = {
        event.seq for event in ledger.events if isinstance(event, Begin) and event.kind.is_durable
    }
    return tuple(
        Acknowledgement(
            before_cut_ms=cut_ms - event.t_ms,
            is_gone=record.rollback_ms is not None and cut_ms - event.t_ms <= record.rollback_ms,
        )
        for event in ledger.events
        if isinstance(event, Done) and event.seq in durable and event.t_ms <= cut_ms
    )


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
