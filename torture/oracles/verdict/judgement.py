"""The judge's answer for a trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from torture.facts.evidence.documents import Document, limits
from torture.oracles.verdict.data_findings import Findings
from torture.oracles.verdict.verdicts import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement(Document):
    """The end of a trial, and its reasons.

    The verdict of a part is None if there was nothing to score (a raw disk has no filesystem).
    """

    verdict: Annotated[Verdict, limits(extra={"refused": "is no name"})]
    pool: Verdict | None = None
    filesystem: Verdict | None = None
    findings: Findings = field(default_factory=Findings)
    """The findings about the data. Their `reasons` are among those of the whole."""
    fsck: str = ""
    """The words for the filesystem's check."""
    pool_summary: str = ""
    """The words for the import."""
    administration: str = ""
    """The outcome of the administration: `done`, `undone`, `going on`, `in part`, `half`. It is
    empty if no NAS came back that could show it, or if there was no administration."""
    reasons: tuple[str, ...] = ()

    @property
    def data(self) -> Verdict | None:
        """The verdict of the data alone."""
        return self.findings.verdict

    @property
    def acknowledged(self) -> int:
        """Durable operations whose acknowledgement reached the client."""
        return self.findings.acknowledged

    @property
    def lost(self) -> int:
        """Of these, the missing ones."""
        return self.findings.lost

    @property
    def parts(self) -> dict[str, Verdict | None]:
        """The verdict of each part."""
        return {"pool": self.pool, "filesystem": self.filesystem, "data": self.data}
