"""`outage.json`: what did not come back after the cut, and what its kernel said."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from torture.facts.evidence.typed import text_of

OUTAGE = "outage.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outage:
    """Something that the NAS, or a client of it, did not do within an operator's patience."""

    stage: str
    """The trial's stage in which it was waited for."""
    what: str
    machine: str
    """Which machine it was waited for in: its role, as its console log is called."""
    of_nas: bool
    """Whether that is the NAS: then the pool is what did not come back, else what is on it."""
    kernel: tuple[str, ...] = ()
    """The end of that machine's kernel log, with the stacks of the tasks that hang."""

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self | None:
        """The outage of `as_json`'s data; None where nothing says what did not come back."""
        what = text_of(data, "what")
        kernel = data.get("kernel")
        if not what:
            return None
        return cls(
            stage=text_of(data, "stage"),
            what=what,
            machine=text_of(data, "machine"),
            of_nas=data.get("of_nas") is not False,
            kernel=tuple(map(str, kernel)) if isinstance(kernel, list | tuple) else (),
        )
