"""What became of what a load had acknowledged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torture.oracles.verdict.observations import Observation
from torture.oracles.verdict.verdicts import Verdict, worst


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What became of the acknowledged data.

    `lost` counts acknowledged operations whose effect is not there; `missing`, `torn`, `stale` and
    `foreign` count the blocks and names that show it. `torn_in_flight` are blocks of operations
    nobody had acknowledged: allowed. `rollback_ms` is set when rolled back: from the first
    acknowledgement that is gone to the cut (to the last acknowledgement, if the client lived on).
    """

    verdict: Verdict
    acknowledged: int
    lost: int
    missing: int = 0
    torn: int = 0
    stale: int = 0
    foreign: int = 0
    torn_in_flight: int = 0
    rollback_ms: float | None = None
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    """What a load measured itself, by names of its own."""
    observations: tuple[Observation, ...] = ()
    """The few that decide the verdict; none of an intact one."""


def together(findings: Sequence[Findings]) -> Findings:
    """What became of several loads' data: the worst verdict, everything that is gone counted.

    They rolled back together as far as the one that went back farthest.
    """
    if len(findings) == 1:
        return findings[0]
    verdict = worst(finding.verdict for finding in findings)
    back_ms = [finding.rollback_ms for finding in findings if finding.rollback_ms is not None]
    return Findings(
        verdict=verdict,
        acknowledged=sum(finding.acknowledged for finding in findings),
        lost=sum(finding.lost for finding in findings),
        missing=sum(finding.missing for finding in findings),
        torn=sum(finding.torn for finding in findings),
        stale=sum(finding.stale for finding in findings),
        foreign=sum(finding.foreign for finding in findings),
        torn_in_flight=sum(finding.torn_in_flight for finding in findings),
        rollback_ms=max(back_ms) if back_ms and verdict is Verdict.ROLLED_BACK else None,
        reasons=tuple(reason for finding in findings for reason in finding.reasons),
        figures={name: value for finding in findings for name, value in finding.figures.items()},
        observations=tuple(one for finding in findings for one in finding.observations),
    )
