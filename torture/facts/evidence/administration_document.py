"""`administration.json`: what was done to the pool when the cut came, and whether it had returned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from torture.facts.evidence.typed import text_of, whole_of

ADMINISTRATION = "administration.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdministrationDocument:
    """A command that was issued in the NAS before its power was cut."""

    name: str
    """As the axis calls it."""
    moment: str
    """When it was to be cut."""
    issued_seq: int | None
    """The last event of the shelf's log when the command was sent on its way."""
    returned: int | None
    """What it returned, as it said on the NAS's console before the cut; None when it had not."""

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self | None:
        """The document of `as_json`'s data; None where nothing says what was done."""
        name = text_of(data, "name")
        if not name:
            return None
        return cls(
            name=name,
            moment=text_of(data, "moment"),
            issued_seq=whole_of(data, "issued_seq"),
            returned=whole_of(data, "returned"),
        )
