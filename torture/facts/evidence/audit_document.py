"""The result of the audit of a trial's recording; `cut.json` has it under `audit`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from torture.facts.evidence.documents import Count, Document

_ADDED = ("acknowledgements", "completions", "txgs", "broken", "waived", "took_ms")


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditDocument(Document):
    """Counts, and the first few findings in words; a trial without an audit has None."""

    acknowledgements: Count | None = None
    """Durable operations that were acknowledged between the first mark and the cut."""
    completions: Count | None = None
    """Writes whose completion promised something, by itself or by a later flush of the client's
    disk."""
    txgs: Count | None = None
    """Transaction groups whose uberblock was written."""
    broken: Count | None = None
    """How often an invariant did not hold."""
    findings: tuple[str, ...] = ()
    """E.g. `acknowledged-is-durable at event 1401: 4 writes not covered, first 1391`."""
    waived: Count | None = None
    """How often an invariant that the cell's own settings break did not hold; None where there is
    none."""
    under_way: Count | None = None
    """Durable operations that the client had begun, without an acknowledgement at the cut."""
    acknowledged_lately: Count | None = None
    """Durable operations acknowledged within the last second before it."""
    uncommitted_ms: Count | None = None
    """How long before the cut ZFS began to write the last transaction group that was committed."""
    took_ms: Count | None = None
    """Time of a processor, without other work of the host; before 0.5 by the clock."""

    @property
    def is_broken(self) -> bool:
        """Whether an invariant did not hold."""
        return bool(self.broken)

    def and_then(self, later: Self) -> Self:
        """The sum of both audits; facts about the cut are those of this one."""

        def added(name: str) -> int | None:
            counts = [getattr(audit, name) for audit in (self, later)]
            known = [count for count in counts if count is not None]
            return sum(known) if known else None

        return replace(
            self,
            findings=(*self.findings, *later.findings),
            **{name: added(name) for name in _ADDED},
        )
