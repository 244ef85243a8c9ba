"""What a configuration can be supposed to hold, and which verdicts break that."""

from __future__ import annotations

from enum import StrEnum

from torture.verdict.verdicts import Verdict

ROLLBACK_MS_MAX = 15_000
"""How much acknowledged time a cell that rolls back may lose at most. At a cut at most three
transaction groups are not on the disks: the open, the quiescing and the syncing one, each filled
for `zfs_txg_timeout`, which is 5 s. Losing more means that ZFS did not commit when it should."""


class Guarantee(StrEnum):
    """What a cell is supposed to hold."""

    SAFE = "safe"
    """Nothing acknowledged is lost, nothing needs repair."""
    ROLLS_BACK = "rolls back"
    """Up to `ROLLBACK_MS_MAX` of acknowledged data may be gone, but what is there is consistent."""
    LOSES = "loses"
    """Acknowledged data may be lost or damaged, up to losing the VM; the pool itself survives."""
    MAY_LOSE_POOL = "may lose the pool"
    """Anything may happen, up to a pool that cannot be imported."""

    @property
    def worst_allowed(self) -> Verdict:
        """The worst verdict that still keeps the guarantee."""
        return _WORST_ALLOWED[self]

    def is_broken_by(self, verdict: Verdict, rollback_ms: float | None = None) -> bool:
        """Whether a verdict, or how far it rolled back, is worse than guaranteed.

        Never for `inconclusive`. `rollback_ms` is the record's; None bounds nothing.
        """
        if verdict is Verdict.INCONCLUSIVE:
            return False
        if (
            self is Guarantee.ROLLS_BACK
            and rollback_ms is not None
            and rollback_ms > ROLLBACK_MS_MAX
        ):
            return True
        return verdict.badness > self.worst_allowed.badness


_WORST_ALLOWED = {
    Guarantee.SAFE: Verdict.INTACT,
    Guarantee.ROLLS_BACK: Verdict.ROLLED_BACK,
    Guarantee.LOSES: Verdict.UNREPAIRABLE,
    Guarantee.MAY_LOSE_POOL: Verdict.POOL_LOST,
}
