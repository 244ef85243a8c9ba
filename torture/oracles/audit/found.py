"""The result of an audit: the counts of checked promises, and the findings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torture.facts.evidence.audit_document import AuditDocument
from torture.facts.evidence.phase import Phase
from torture.oracles.audit.invariants import Finding

_FINDINGS_REPORTED_MAX = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The counts of checked promises, and the findings."""

    acknowledged_at: tuple[int, ...]
    """The numbers of the marks that acknowledged a durable operation."""
    completions: int | None
    """Writes of the client that had to be durable; None where no request was traced."""
    txgs: int
    findings: tuple[Finding, ...]
    waived: int
    """How often a waived invariant was broken."""
    phase: Phase | None
    """The cut's phase; None where the content of writes does not distinguish them."""
    under_way: int | None
    """Durable operations begun and not acknowledged at the cut; None where no load keeps a ledger."""
    acknowledged_lately: int | None
    """Durable operations acknowledged in the last second before the cut; None where no load keeps a
    ledger.
    """
    uncommitted_ms: int | None
    """`torture.oracles.audit.commits.Commits.uncommitted_ms` at the cut."""

    @property
    def acknowledgements(self) -> int:
        """How many durable operations were acknowledged."""
        return len(self.acknowledged_at)

    def marks_only(self) -> Audit:
        """The audit without the results that depend on the role of a write.

        Only the ledger's marks count where the recording's writes cannot be classified.
        """
        return replace(
            self,
            acknowledged_at=(),
            completions=None,
            txgs=0,
            findings=(),
            waived=0,
            phase=None,
            uncommitted_ms=None,
        )

    def as_document(self, *, took_ms: int) -> AuditDocument:
        """For `cut.json`."""
        return AuditDocument(
            acknowledgements=self.acknowledgements,
            completions=self.completions,
            txgs=self.txgs,
            broken=len(self.findings),
            findings=tuple(
                finding.in_words() for finding in self.findings[:_FINDINGS_REPORTED_MAX]
            ),
            waived=self.waived or None,
            under_way=self.under_way,
            acknowledged_lately=self.acknowledged_lately,
            uncommitted_ms=self.uncommitted_ms,
            took_ms=took_ms,
        )
