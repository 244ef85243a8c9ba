"""Whether a cell that must lose loses: else its setting may not be in effect.

Pure, over plain records. An intact cut says something only if acknowledged operations were at risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from torture.choices.matrix.cell_terms import is_log_on_data_disks, must_lose
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import GONE, AuditDocument
from torture.oracles.verdict.guarantee import is_too_safe
from torture.records.record.trials import TrialRecord

_LATELY_MS = 1_000
"""Older audits counted only the operations acknowledged so shortly before the cut."""


def is_at_risk(record: TrialRecord) -> bool | None:
    """Whether theory says that this cut took acknowledged operations, more likely than not.

    None where the cell need not lose, and where the record does not say it.
    """
    cell = _cell_of(record)
    if cell is None or not record.is_conclusive or record.cut.confirmed.is_made:
        return None
    return _has_something_in(record.cut.audit, window_ms=_window_ms(record.cut.view, cell))


def is_lie_at_risk(record: TrialRecord) -> bool | None:
    """Whether a log whose disks lie had an acknowledged operation to lose at the cut.

    None where a disk of the log does not lie, and where the record does not say it. An operation's
    names become durable later than its data, up to the acknowledgement: `logged_ms` is of the data.
    """
    try:
        disks = _log_disks(record.cut.view, Cell.parse(record.cell))
    except ValueError:
        return None
    lies_ms = [disk["lying_ms"] for disk in disks if "lying_ms" in disk]
    audit = record.cut.audit
    if not lies_ms or len(lies_ms) < len(disks) or audit.uncommitted is None:
        return None
    is_quiet = audit.acknowledged_lately == 0 and max(lies_ms) < _LATELY_MS
    if audit.uncommitted == 0 or is_quiet:
        return False
    return True if _has_something_in(audit, window_ms=min(lies_ms)) else None


def _cell_of(record: TrialRecord) -> Cell | None:
    try:
        cell = Cell.parse(record.cell)
    except ValueError:
        return None
    return cell if must_lose(cell) else None


def _window_ms(view: Mapping[str, Any], cell: Cell) -> float:
    """A cut takes only logged operations that became durable so shortly before it."""
    bounds = (
        min(disk.get("lying_ms", math.inf), disk.get("held_ms", math.inf))
        for disk in _log_disks(view, cell)
    )
    return min(bounds, default=math.inf)


def _log_disks(view: Mapping[str, Any], cell: Cell) -> list[Mapping[str, Any]]:
    """The states of the disks with the intent log, without those that are gone."""
    place = "data" if is_log_on_data_disks(cell) else "slog"
    disks: Mapping[str, Mapping[str, Any]] = view.get("disks", {})
    return [
        disk
        for serial, disk in disks.items()
        if serial.startswith(place) and disk.get("policy") != GONE
    ]


def _has_something_in(audit: AuditDocument, *, window_ms: float) -> bool | None:
    if audit.uncommitted is not None:
        if not audit.uncommitted or window_ms == math.inf:
            return audit.uncommitted > 0
        return None if audit.logged_ms is None else audit.logged_ms < window_ms
    since_ms = audit.uncommitted_ms
    # unknown where groups were written and none was committed
    is_wide = since_ms >= _LATELY_MS if since_ms is not None else bool(audit.txgs)
    if audit.acknowledged_lately is None or not is_wide or window_ms < _LATELY_MS:
        return None
    return audit.acknowledged_lately > 0


def too_safe_in_words(records: Iterable[TrialRecord]) -> str:
    """The sentence about the live trials of one cell that lose less than theory says; empty if none."""
    risky = [record for record in records if is_at_risk(record)]
    lost = sum(record.is_loss for record in risky)
    return said_of(risky[0].cell, at_risk=len(risky), lost=lost) if risky else ""


def said_of(cell: str, *, at_risk: int, lost: int) -> str:
    """The sentence about a cell with so many cuts at risk; empty if theory agrees."""
    if not is_too_safe(lost=lost, at_risk=at_risk):
        return ""
    return (
        f"{cell} loses less than theory says: none of {at_risk} cuts with acknowledged operations at "
        "risk lost one. Is the setting in effect?"
    )
