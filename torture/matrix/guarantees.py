"""What each cell must hold: theory's prediction, which a test compares with what was measured.

Sources: OpenZFS `module/os/linux/zfs/zvol_os.c` (a zvol write is synchronous only with FUA, a flush
or sync=always) and `module/zfs/zil.c` (sync=disabled makes `zil_commit` return at once); Linux
`drivers/target/target_core_iblock.c` (LIO mirrors the zvol's write cache, so the LUN is write-back);
man zfs.4 (`zfs_txg_timeout`). What ZFS flushes before it acknowledges: the log's devices in `zil.c`
(`zil_lwb_flush_vdevs_done`), the data disks and the uberblocks in `module/zfs/vdev_label.c`
(`vdev_config_sync`). A pool is imported without its log only with `-m`, at the last transaction group
that is whole (zpool-import(8)). A log with nothing missing but its end replays up to there.
"""

from __future__ import annotations

from enum import StrEnum

from torture.matrix.axes import Disks, Fate, Slog, Sync
from torture.matrix.cells import Cell
from torture.verdict.words import Verdict

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

_FORGETFUL_SLOGS = frozenset({Slog.LYING, Slog.LOST})
"""Log devices that may not hold after the cut what ZFS acknowledged on their word: the pool is back
at its last transaction group, as if nothing had been synchronous."""


def guarantee_of(cell: Cell) -> Guarantee:
    """What theory guarantees for a cell.

    Disks and log devices that honour flushes are as good as those that keep everything, and a log
    that still has one good leg is a log. Layouts and speeds change no guarantee.
    """
    if cell.disks is Disks.LYING:
        return Guarantee.MAY_LOSE_POOL
    match cell.sync, cell.fate:
        case Sync.DISABLED, Fate.BOTH_DIE:
            return Guarantee.ROLLS_BACK
        case ((Sync.DISABLED | Sync.STANDARD), Fate.NAS_ONLY):
            return Guarantee.LOSES
    if cell.slog not in _FORGETFUL_SLOGS:
        return Guarantee.SAFE
    return Guarantee.ROLLS_BACK if cell.fate is Fate.BOTH_DIE else Guarantee.LOSES
