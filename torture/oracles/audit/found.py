"""What an audit looked at, and what it found."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.evidence.audit_document import AuditDocument
from torture.facts.evidence.phase import Phase
from torture.oracles.audit.invariants import Finding

_FINDINGS_TOLD_MAX = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What was looked at, and what was found."""

    acknowledged_at: tuple[int, ...]
    """The marks with which a durable operation was acknowledged, by number."""
    completions: int | None
    """Writes of the client that had to be durable; None where its disk told nothing."""
    txgs: int
    findings: tuple[Finding, ...]
    waived: int
    """Of the invariants that were waived: how often one did not hold."""
    phase: Phase | None
    """Of the cut; None where writes cannot be told apart."""
    under_way: int | None
    """Durable operations begun and not acknowledged at the cut; None where no load keeps a ledger."""
    acknowledged_lately: int | None
    """Durable operations acknowledged in the last second before it; None likewise."""
    uncommitted_ms: int | None
    """As `torture.oracles.audit.commits.Commits.uncommitted_ms` at the cut."""

    @property
    def acknowledgements(self) -> int:
        """Durable operations that were acknowledged."""
        return len(self.acknowledged_at)

    def as_document(self, *, took_ms: int) -> AuditDocument:
        """For `cut.json`."""
        return AuditDocument(
            acknowledgements=self.acknowledgements,
            completions=self.completions,
            txgs=self.txgs,
            broken=len(self.findings),
            findings=tuple(finding.in_words() for finding in self.findings[:_FINDINGS_TOLD_MAX]),
            waived=self.waived or None,
            under_way=self.under_way,
            acknowledged_lately=self.acknowledged_lately,
            uncommitted_ms=self.uncommitted_ms,
            took_ms=took_ms,
        )
