"""What each cell must hold: theory's prediction, which a test compares with what was measured.

A transport says what it holds on disks that honour flushes; what the cell's log devices and data
disks take from that is said here. What ZFS flushes before it acknowledges: the log's devices in
`module/zfs/zil.c` (`zil_lwb_flush_vdevs_done`), the data disks and the uberblocks in
`module/zfs/vdev_label.c` (`vdev_config_sync`). A pool is imported without its log only with `-m`, at
the last transaction group that is whole (zpool-import(8)). A log with nothing missing but its end
replays up to there.
"""

from __future__ import annotations

from torture.axes.data_disks import Disks
from torture.axes.fate import Fate
from torture.matrix.axes import DISKS, FATE, SLOG, TRANSPORT
from torture.matrix.cells import Cell
from torture.matrix.durability import acknowledged_sync_of
from torture.verdict.guarantee import Guarantee


def guarantee_of(cell: Cell) -> Guarantee:
    """What theory says a cell holds.

    Disks and log devices that honour flushes are as good as those that keep everything, and a log
    that still has one good leg is a log. Layouts, speeds and filesystems change nothing.
    """
    if cell[DISKS] is Disks.LYING:
        return Guarantee.MAY_LOSE_POOL
    fate = cell[FATE]
    honest = cell[TRANSPORT].guarantee(sync=acknowledged_sync_of(cell), fate=fate)
    if honest is not Guarantee.SAFE or not cell[SLOG].is_forgetful:
        return honest
    return Guarantee.ROLLS_BACK if fate is Fate.BOTH_DIE else Guarantee.LOSES
