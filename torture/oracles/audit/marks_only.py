"""An audit of a recording whose writes cannot be classified: only the ledger's marks count."""

from __future__ import annotations

from dataclasses import replace

from torture.oracles.audit.found import Audit


def marks_only(found: Audit) -> Audit:
    """The audit without the results that depend on the role of a write."""
    return replace(
        found,
        acknowledged_at=(),
        completions=None,
        txgs=0,
        findings=(),
        waived=0,
        phase=None,
        uncommitted_ms=None,
    )
