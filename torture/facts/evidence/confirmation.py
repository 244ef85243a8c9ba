"""What `cut.json` says under `confirmed`: which finding of the audit was, and how; or why none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torture.facts.evidence.documents import Count, Document, Finite
from torture.facts.evidence.ledger import Ledger, cut_after, parse_ledger


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation(Document):
    """The cut that a trial recovered and checked instead of the one that was drawn.

    A trial whose audit found nothing says nothing here. Whether something was lost its verdict says.
    """

    finding: str = ""
    """In words, as the audit has it; empty where none was confirmed."""
    why_not: str = ""
    """Why the drawn cut was recovered although there was a finding."""
    event: Count | None = None
    """The number of the last event that happened."""
    t_ms: Finite | None = None
    """When that was, in milliseconds since the trial began."""
    marks: Count | None = None
    """Lines of the ledger before it in the shelf's log: the others are of what never happened."""
    acknowledged: Count | None = None
    """Durable operations that were acknowledged in these."""
    view: dict[str, Any] = field(default_factory=dict)
    """The crash state, as `torture.facts.recording.crash_state` writes it."""

    @property
    def is_made(self) -> bool:
        """Whether an earlier cut was recovered instead of the drawn one."""
        return self.marks is not None

    def ledger_of(self, data: bytes) -> Ledger:
        """What a stored ledger says up to the cut that was recovered: nothing later happened then."""
        if self.marks is not None:
            data = cut_after(data, lines=self.marks, t_ms=self.t_ms or 0.0)
        return parse_ledger(data)
