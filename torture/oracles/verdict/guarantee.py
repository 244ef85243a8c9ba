"""The terms of a trial, the supposed guarantee of its configuration, and the verdicts that break it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from torture.oracles.verdict.verdicts import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The terms; without any cell they are those of a disk whose client dies in the cut."""

    tears_sectors: bool = False
    """Whether a crash may leave part of a sector of a write in flight."""
    names_are_stable: bool = False
    """Whether a creation, rename or removal is durable once its call returns."""
    content_is_safe: bool = False
    """Whether flushed content of files is guaranteed, although their names may go back."""
    excuses_names: bool = False
    """Whether each name may be as before its last changes, whatever was acknowledged."""
    repeats_requests: bool = False
    """Whether a NAS that comes back may do a request again that its client had sent before the cut."""
    client_lives: bool = False
    """Whether the client lives through the cut, and the host ends its load afterwards."""
    is_replay: bool = False
    """Whether the trial is a replay of an earlier trial's disks: no client ran in it."""


ROLLBACK_MS_MAX = 15_000
"""The limit for the rollback of a cell that rolls back, if no recording shows the commits. At a cut
at most three transaction groups are not on the disks: the open, the quiescing and the syncing one.
Each is filled for `zfs_txg_timeout`, which is 5 s."""

COMMIT_SLACK_MS = 2_000
"""The time for acknowledgements into the next transaction group before the syncing one's first write."""


AT_RISK_CUTS_MIN = 8
"""The number of cuts with acknowledged operations at risk from which on a loss is certain.

Of these a cell that must lose loses at least half. So none of 8 is lost with a probability of 0.4 %.
"""


def is_too_safe(*, lost: int, at_risk: int) -> bool:
    """Whether a cell that must lose loses less than theory says."""
    return at_risk >= AT_RISK_CUTS_MIN and lost == 0


class Guarantee(StrEnum):
    """The supposed guarantee of a cell."""

    SAFE = "safe"
    """Nothing acknowledged is lost, nothing needs repair."""
    ROLLS_BACK = "rolls back"
    """Data that no transaction group had committed may be gone, but the rest is consistent."""
    LOSES = "loses"
    """Acknowledged data may be lost or damaged, and the VM may be lost or stuck; the pool itself
    survives."""
    MAY_LOSE_POOL = "may lose the pool"
    """Anything may happen, up to a pool that cannot be imported."""

    @property
    def worst_allowed(self) -> Verdict:
        """The worst verdict that still keeps the guarantee."""
        return _WORST_ALLOWED[self]

    def is_broken_by(
        self,
        verdict: Verdict,
        rollback_ms: float | None = None,
        *,
        rollback_ms_max: float = ROLLBACK_MS_MAX,
        pool: Verdict | None = None,
    ) -> bool:
        """Whether a verdict, the pool's own, or the length of the rollback, is worse than guaranteed.

        Never for `inconclusive`. `rollback_ms` is the record's; None bounds nothing. The pool's
        fate must not depend on `sync`, nor on whether the VM may lose data. Disks that honour
        flushes never cost the pool more than its log.
        """
        if verdict is Verdict.INCONCLUSIVE:
            return False
        if (
            self is Guarantee.ROLLS_BACK
            and rollback_ms is not None
            and rollback_ms > rollback_ms_max
        ):
            return True
        if pool is not None and self is not Guarantee.MAY_LOSE_POOL:
            return max(verdict.badness - self.worst_allowed.badness, pool.badness - _POOL_MAX) > 0
        return verdict.badness > self.worst_allowed.badness


_WORST_ALLOWED = {
    Guarantee.SAFE: Verdict.INTACT,
    Guarantee.ROLLS_BACK: Verdict.ROLLED_BACK,
    Guarantee.LOSES: Verdict.UNAVAILABLE,
    Guarantee.MAY_LOSE_POOL: Verdict.POOL_LOST,
}
_POOL_MAX = Verdict.REPAIRED.badness
"""An import without the log device that the cut took (`-m`) is allowed. Giving up transactions
(`-F`), errors in data, hanging and panicking are not."""
