"""The guarantee of each cell: theory's prediction, which a test compares with measurements.

A transport declares its guarantee on disks that honour flushes. This module declares how the cell's
log devices and data disks weaken it.

ZFS flushes before it acknowledges: the log's devices in `module/zfs/zil.c`
(`zil_lwb_flush_vdevs_done`), the data disks and the uberblocks in `module/zfs/vdev_label.c`
(`vdev_config_sync`). Only `-m` imports a pool without its intent log, at the last whole transaction
group (zpool-import(8)). ZFS replays an intent log that misses only its end up to
there.
"""

from __future__ import annotations

from torture.choices.matrix.axes import DISKS, FATE, LAYOUT, SETTINGS, SLOG, TRANSPORT
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.durability import (
    acknowledged_sync_of,
    flushed_data_sync_of,
    names_are_volatile_in,
)
from torture.facts.axes.fate import Fate
from torture.facts.axes.pool_disks import Layout
from torture.facts.axes.setting import ZFS_NOCACHEFLUSH, ZIL_NOCACHEFLUSH
from torture.facts.axes.sync import Sync
from torture.facts.recording.disks import Persistence
from torture.oracles.verdict.guarantee import Guarantee


def guarantee_of(cell: Cell) -> Guarantee:
    """The guarantee that theory gives a cell.

    Disks and log devices that honour flushes are as good as those that keep everything. An intent
    log with one good leg left still works. Where ZFS is set not to flush, only devices that keep
    everything are good.

    Layouts, speeds, filesystems and the place or size of a written block change nothing.
    `logbias=throughput` writes blocks of data before the log blocks that point to them, and flushes
    both before it acknowledges (OpenZFS `module/zfs/dmu.c`, `dmu_sync_done`).
    """
    return _guarantee_of(cell, acknowledged_sync_of(cell))


def content_is_safe_in(cell: Cell) -> bool:
    """Whether a cell whose names may go back guarantees the flushed content of its files all the same."""
    is_safe = _guarantee_of(cell, flushed_data_sync_of(cell)) is Guarantee.SAFE
    return names_are_volatile_in(cell) and is_safe


def keeps_flushed_data(cell: Cell) -> bool:
    """Whether theory promises that data which the client flushed outlive its NAS's loss of power."""
    together = cell.but(fate=Fate.BOTH_DIE.value)
    return _guarantee_of(together, flushed_data_sync_of(cell)) is Guarantee.SAFE


def _guarantee_of(cell: Cell, acknowledged: Sync) -> Guarantee:
    """That of what is acknowledged with this sync level."""
    keeps_all = cell[DISKS] is Persistence.PLP
    if cell[DISKS] is Persistence.LYING or (cell[ZFS_NOCACHEFLUSH] and not keeps_all):
        return Guarantee.MAY_LOSE_POOL
    fate = cell[FATE]
    honest = cell[TRANSPORT].guarantee(sync=acknowledged, fate=fate)
    if honest is not Guarantee.SAFE or not _is_log_forgetful(cell):
        return honest
    return Guarantee.LOSES if fate is Fate.NAS_ONLY else Guarantee.ROLLS_BACK


def _is_log_forgetful(cell: Cell) -> bool:
    """Whether the cut may take the intent log's content; also where it was never flushed."""
    slog = cell[SLOG]
    if slog.is_forgetful or flushes_its_log(cell):
        return slog.is_forgetful
    on_data_disks = is_log_on_data_disks(cell) and cell[DISKS] is not Persistence.PLP
    return on_data_disks or any(leg is not Persistence.PLP for leg in slog.legs)


def is_log_on_data_disks(cell: Cell) -> bool:
    """Whether the intent log lies on the data disks (zfsprops(7), `logbias`)."""
    return not cell[SLOG].legs or cell[SETTINGS].properties.get("logbias") == "throughput"


def must_lose(cell: Cell) -> bool:
    """Whether at least half of all cuts take acknowledged data that no transaction group has committed.

    The data are in the memory of the NAS alone, or their log lies on one device that forgets it. A cell
    that merely may lose something has no lower bound. Nor has one with an unflushed log on several
    devices: some of them may keep it.
    """
    if flushed_data_sync_of(cell) is Sync.DISABLED:
        return True
    if not flushes_its_log(cell):
        return _is_log_forgetful(cell) and _is_log_on_one_device(cell)
    return cell[SLOG].is_forgetful and not is_log_on_data_disks(cell)


def _is_log_on_one_device(cell: Cell) -> bool:
    if is_log_on_data_disks(cell):
        return cell[LAYOUT] is Layout.SINGLE
    return len(cell[SLOG].legs) - cell[SLOG].gone_at_cut == 1


def flushes_its_log(cell: Cell) -> bool:
    """Whether ZFS flushes its writes to its intent log, where it has one (zfs(4))."""
    return not (cell[ZIL_NOCACHEFLUSH] or cell[ZFS_NOCACHEFLUSH])
