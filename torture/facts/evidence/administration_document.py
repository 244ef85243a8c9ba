"""`administration.json`: the command on the pool at the cut, and whether it had returned."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.evidence.documents import Count, Document, Text

ADMINISTRATION = "administration.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdministrationDocument(Document):
    """A command that was issued in the NAS before its power was cut."""

    name: Text
    """The name by which the axis calls it."""
    moment: str = ""
    """The point in its course at which a cut was due; empty where the trial did not reach it."""
    issued_seq: Count | None = None
    """The last event of the shelf's recording when the command was sent."""
    returned: Count | None = None
    """The exit code on the NAS's console before the cut; None when the command had not returned."""
