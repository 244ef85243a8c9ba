"""The judge's answer for a trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from torture.facts.evidence.documents import Document, limits
from torture.oracles.verdict.data_findings import Findings
from torture.oracles.verdict.verdicts import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement(Document):
    """How a trial ended and why.

    The verdicts of the parts are None where there was nothing to score (a raw disk has no filesystem).
    """

    verdict: Annotated[Verdict, limits(extra={"refused": "is no name"})]
    pool: Verdict | None = None
    filesystem: Verdict | None = None
    findings: Findings = field(default_factory=Findings)
    """Of the data. Their `reasons` are among those of the whole."""
    fsck: str = ""
    """In words: the filesystem's check."""
    pool_summary: str = ""
    """In words: the import."""
    administration: str = ""
    """The outcome of the administration: `done`, `undone`, `going on`, `in part`, `half`; empty
    where no NAS came back that could tell, or nothing was done."""
    reasons: tuple[str, ...] = ()

    @property
    def data(self) -> Verdict | None:
        """The verdict of the data alone."""
        return self.findings.verdict

    @property
    def acknowledged(self) -> int:
        """Durable operations that the client was told are done."""
        return self.findings.acknowledged

    @property
    def lost(self) -> int:
        """Of these, the ones that are not there."""
        return self.findings.lost

    @property
    def parts(self) -> dict[str, Verdict | None]:
        """The verdict of each part."""
        return {"pool": self.pool, "filesystem": self.filesystem, "data": self.data}
