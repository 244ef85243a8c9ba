"""The timeline of one cut: the trial's stages, and the last acknowledgements before it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torture.facts.evidence.folder import LEDGER
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
