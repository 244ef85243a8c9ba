"""The state of the data that a load had acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from torture.facts.evidence.documents import (
    Count,
    Document,
    Figure,
    MeasuredFigure,
    Number,
    unwritten,
)
from torture.oracles.verdict.observations import Observation
from torture.oracles.verdict.verdicts import Verdict, worst


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings(Document):
    """The state of the acknowledged data, with counts of the damaged blocks and names."""

    verdict: Verdict | None = None
    """None where no data were judged."""
    acknowledged: Figure = 0
    """Durable operations that the client was told are done."""
    lost: Figure = 0
    """Of these, the ones whose effect is not there."""
    missing: Count = 0
    torn: Count = 0
    stale: Count = 0
    """Of an older generation."""
    foreign: Count = 0
    """With another's content."""
    torn_in_flight: Count = 0
    """Torn by operations that were not acknowledged: allowed."""
    rollback_ms: MeasuredFigure = None
    """Where what is left is a past state: from the first acknowledgement that is gone to the cut (to
    the last acknowledgement, if the client lived on)."""
    reasons: tuple[str, ...] = ()
    figures: dict[str, Number] = field(default_factory=dict)
    """The load's own measurements, by names of its own."""
    observations: tuple[Observation, ...] = unwritten(())
    """The few that decide the verdict; none of an intact one. The record leaves them to its evidence."""


COUNTS = tuple(own.name for own in fields(Findings) if own.default == 0)
"""The fields that are counts."""


def together(findings: Sequence[Findings]) -> Findings:
    """What became of several loads' data: the worst verdict, everything that is gone counted.

    They rolled back together as far as the one that went back farthest.
    """
    if len(findings) == 1:
        return findings[0]
    verdict = worst(finding.verdict for finding in findings if finding.verdict is not None)
    back_ms = [finding.rollback_ms for finding in findings if finding.rollback_ms is not None]
    return Findings(
        verdict=verdict,
        rollback_ms=max(back_ms) if back_ms and verdict is Verdict.ROLLED_BACK else None,
        reasons=tuple(reason for finding in findings for reason in finding.reasons),
        figures={name: value for finding in findings for name, value in finding.figures.items()},
        **{name: sum(getattr(finding, name) for finding in findings) for name in COUNTS},
        observations=tuple(one for finding in findings for one in finding.observations),
    )
