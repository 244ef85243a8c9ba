"""What was done to the pool of a trial when the power was cut, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from torture.facts.evidence.typed import text_of, whole_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Administered:
    """An operation of `torture.choices.administration`."""

    name: str
    moment: str = ""
    """When, in its course, it was to be cut; empty where the trial did not come to that."""
    returned: int | None = None
    """What its command had returned before the cut; None when it had not."""
    outcome: str = ""
    """`done`, `undone`, `going on`, `half`; empty where no NAS came back that could tell."""

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self | None:
        """The operation of `as_json`'s data; None where there was none."""
        name = text_of(data, "name")
        if not name:
            return None
        return cls(
            name=name,
            moment=text_of(data, "moment"),
            returned=whole_of(data, "returned"),
            outcome=text_of(data, "outcome"),
        )
