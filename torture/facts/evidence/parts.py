"""Parts of a trial's evidence that features leave: each is a document, and has a name in the record."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import ClassVar

from torture.discovery import offered_by_features
from torture.facts.evidence.documents import Document


class Part(Document, frozen=True, kw_only=True):
    """A feature's document. Without a finding of its own it neither shows nor leaves open anything."""

    FILE: ClassVar[str]
    """Its file in the evidence."""
    FIELD: ClassVar[str]
    """Its name in the record of the trial."""
    LACKING: ClassVar[str] = ""
    """Why a trial that was to leave it, and did not, leaves something open."""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts that it shows beside that of the trial, in no order."""
        return ()

    @property
    def shows_loss(self) -> bool:
        """Whether it shows lost or damaged data."""
        return False

    @property
    def in_brief(self) -> str:
        """The finding on a line."""
        return ""

    def left_open(self, *, shown: str) -> Iterator[str]:
        """Why it says nothing for certain; `shown`: the verdict of the other evidence."""
        del shown
        yield from ()

    def in_words(self) -> Iterator[str]:
        """Lines for the explanation of the trial."""
        yield from ()


@cache
def part_kinds() -> tuple[type[Part], ...]:
    """Every kind, by the names of their features."""
    return offered_by_features("documents", "DOCUMENT")
