"""`confirmed` of `cut.json`: the audit's finding that an earlier cut confirms, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torture.facts.evidence.documents import Count, Document, Finite
from torture.facts.evidence.ledger import Ledger, cut_after, parse_ledger


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation(Document):
    """The cut that a trial recovered and checked in place of the drawn cut.

    It is empty where the audit of a trial found nothing. The trial's verdict says whether data were
    lost.
    """

    finding: str = ""
    """The finding in the audit's words; empty where no finding was confirmed."""
    why_not: str = ""
    """Why the trial recovered the drawn cut although there was a finding."""
    event: Count | None = None
    """The number of the last event that happened."""
    t_ms: Finite | None = None
    """The time of that event, in milliseconds since the trial began."""
    marks: Count | None = None
    """Lines of the ledger before that event in the shelf's recording; later lines never happened."""
    acknowledged: Count | None = None
    """Durable operations that were acknowledged in these lines."""
    view: dict[str, Any] = field(default_factory=dict)
    """The crash state, as `torture.facts.recording.crash_state` writes it."""

    @property
    def is_made(self) -> bool:
        """Whether an earlier cut was recovered instead of the drawn one."""
        return self.marks is not None

    def ledger_of(self, data: bytes) -> Ledger:
        """The part of a stored ledger up to the recovered cut: nothing later happened."""
        if self.marks is not None:
            data = cut_after(data, lines=self.marks, t_ms=self.t_ms or 0.0)
        return parse_ledger(data)
