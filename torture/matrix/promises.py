"""What each cell must hold: theory's prediction, which a test compares with what was measured.

Sources: OpenZFS `module/os/linux/zfs/zvol_os.c` (a zvol write is synchronous only with FUA, a flush
or sync=always) and `module/zfs/zil.c` (sync=disabled makes `zil_commit` return at once); Linux
`drivers/target/target_core_iblock.c` (LIO mirrors the zvol's write cache, so the LUN is write-back);
man zfs.4 (`zfs_txg_timeout`).
"""

from __future__ import annotations

from enum import StrEnum

from torture.matrix.axes import Fate, Sync
from torture.matrix.cells import Cell
from torture.matrix.verdicts import Verdict

ROLLBACK_MS_MAX = 15_000
"""How much acknowledged time a cell that rolls back may lose at most. At a cut at most three
transaction groups are not on the disks: the open, the quiescing and the syncing one, each filled
for `zfs_txg_timeout`, which is 5 s. Losing more means that ZFS did not commit when it should."""


class Promise(StrEnum):
    """What a cell is supposed to hold."""

    SAFE = "safe"
    """Nothing acknowledged is lost, nothing needs repair."""
    ROLLS_BACK = "rolls back"
    """Up to `ROLLBACK_MS_MAX` of acknowledged data may be gone, but what is there is consistent."""
    LOSES = "loses"
    """Acknowledged data may be lost or damaged, up to losing the VM; the pool itself survives."""

    @property
    def worst_allowed(self) -> Verdict:
        """The worst verdict that still keeps the promise."""
        return _WORST_ALLOWED[self]

    def is_broken_by(self, verdict: Verdict, rollback_ms: float | None = None) -> bool:
        """Whether a verdict, or how far it rolled back, is worse than promised.

        Never for `inconclusive`. `rollback_ms` is the record's; None bounds nothing.
        """
        if verdict is Verdict.INCONCLUSIVE:
            return False
        if self is Promise.ROLLS_BACK and rollback_ms is not None and rollback_ms > ROLLBACK_MS_MAX:
            return True
        return verdict.badness > self.worst_allowed.badness


_WORST_ALLOWED = {
    Promise.SAFE: Verdict.INTACT,
    Promise.ROLLS_BACK: Verdict.ROLLED_BACK,
    Promise.LOSES: Verdict.UNREPAIRABLE,
}


def promise_of(cell: Cell) -> Promise:
    """What theory promises for a cell whose disks honour flushes and keep what they completed."""
    match cell.sync, cell.fate:
        case Sync.ALWAYS, _:
            return Promise.SAFE
        case Sync.STANDARD, Fate.BOTH_DIE:
            return Promise.SAFE
        case Sync.DISABLED, Fate.BOTH_DIE:
            return Promise.ROLLS_BACK
        case _:
            return Promise.LOSES
