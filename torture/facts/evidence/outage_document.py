"""`outage.json`: the thing that did not come back after the cut, and its kernel's messages."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.evidence.documents import Document, Text

OUTAGE = "outage.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outage(Document):
    """Something that the NAS, or a client of it, did not do within an operator's patience."""

    what: Text
    """The thing that did not come back."""
    stage: str = ""
    """The trial's stage that waited for it."""
    machine: str = ""
    """The role of the machine that should have done it, as in the name of its console log."""
    of_nas: bool = True
    """Whether it is the NAS: then the pool did not come back, else something on the pool."""
    kernel: tuple[str, ...] = ()
    """The end of that machine's kernel log, with the stacks of the tasks that hang."""
