"""What the judge says of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torture.oracles.verdict.observations import Observation
from torture.oracles.verdict.verdicts import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """How a trial ended and why.

    The sub-verdicts are None where there was nothing to score (a raw disk has no filesystem).
    `lost` counts acknowledged operations; `missing`, `torn`, `stale`, `foreign` and
    `torn_in_flight` are as in `torture.oracles.verdict.data_findings.Findings`.
    """

    verdict: Verdict
    pool: Verdict | None = None
    filesystem: Verdict | None = None
    data: Verdict | None = None
    acknowledged: int = 0
    lost: int = 0
    missing: int = 0
    torn: int = 0
    stale: int = 0
    foreign: int = 0
    torn_in_flight: int = 0
    rollback_ms: float | None = None
    fsck: str = ""
    pool_summary: str = ""
    administration: str = ""
    """What became of what was done to the pool; empty where nobody can tell, or nothing was."""
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    """What loads measured themselves."""
    observations: tuple[Observation, ...] = ()
    """The few that decide the verdict of the data."""
