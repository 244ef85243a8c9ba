"""`outage.json`: what did not come back after the cut, and what its kernel said."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.evidence.documents import Document, Text

OUTAGE = "outage.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outage(Document):
    """Something that the NAS, or a client of it, did not do within an operator's patience."""

    what: Text
    """What did not come back."""
    stage: str = ""
    """The trial's stage in which it was waited for."""
    machine: str = ""
    """Which machine it was waited for in: its role, as its console log is called."""
    of_nas: bool = True
    """Whether that is the NAS: then the pool is what did not come back, else what is on it."""
    kernel: tuple[str, ...] = ()
    """The end of that machine's kernel log, with the stacks of the tasks that hang."""
