"""`administration.json`: what was done to the pool when the cut came, and whether it had returned."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.evidence.documents import Count, Document, Text

ADMINISTRATION = "administration.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdministrationDocument(Document):
    """A command that was issued in the NAS before its power was cut."""

    name: Text
    """As the axis calls it."""
    moment: str = ""
    """When, in its course, it was to be cut; empty where the trial did not come to that."""
    issued_seq: Count | None = None
    """The last event of the shelf's log when the command was sent on its way."""
    returned: Count | None = None
    """What it returned, as it said on the NAS's console before the cut; None when it had not."""
