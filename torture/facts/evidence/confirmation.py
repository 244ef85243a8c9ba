"""What `cut.json` says under `confirmed`: which finding of the audit was, and how; or why none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from torture.facts.evidence.ledger import Ledger, cut_after, parse_ledger
from torture.facts.evidence.typed import number_of, object_of, text_of, whole_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation:
    """The cut that a trial recovered and checked instead of the one that was drawn.

    A trial whose audit found nothing says nothing here. Whether something was lost its verdict says.
    """

    finding: str = ""
    """In words, as the audit has it; empty where none was confirmed."""
    why_not: str = ""
    """Why the drawn cut was recovered although there was a finding."""
    event: int | None = None
    """The number of the last event that happened."""
    t_ms: float | None = None
    """When that was, in milliseconds since the trial began."""
    marks: int | None = None
    """Lines of the ledger before it in the shelf's log: the others are of what never happened."""
    acknowledged: int | None = None
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

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back. What is not known is left out."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in values.items() if value not in (None, "", {})}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """As much of it as has the right type."""
        return cls(
            finding=text_of(data, "finding"),
            why_not=text_of(data, "why_not"),
            event=whole_of(data, "event"),
            t_ms=number_of(data, "t_ms"),
            marks=whole_of(data, "marks"),
            acknowledged=whole_of(data, "acknowledged"),
            view=object_of(data, "view"),
        )
