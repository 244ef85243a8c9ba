"""The terms of a cell for its loads and oracles: durability, guarantee, and waived invariants.

A transport declares its guarantee on disks that honour flushes. This module declares how the cell's
log devices and data disks weaken it.

ZFS flushes before it acknowledges: the log's devices in `module/zfs/zil.c`
(`zil_lwb_flush_vdevs_done`), the data disks and the uberblocks in `module/zfs/vdev_label.c`
(`vdev_config_sync`). Only `-m` imports a pool without its intent log, at the last whole transaction
group (zpool-import(8)). ZFS replays an intent log that misses only its end up to
there.

The audit counts breaches of waived invariants, and they are no finding against ZFS.
"""

from __future__ import annotations

import math
import sys

from torture.choices.matrix.cells import (
    ADMINISTRATION,
    AWAY,
    DISKS,
    EARLY,
    EVENT,
    FATE,
    IMAGE,
    LAYOUT,
    NAS_LINK,
    NFS_EXPORT,
    PATIENCE,
    SETTINGS,
    SLOG,
    SYNC,
    TRANSPORT,
    Cell,
)
from torture.choices.transports.protocol import CompletedWrite
from torture.choices.volumes import VolumeKind
from torture.facts.axes.early import Early
from torture.facts.axes.event import Event
from torture.facts.axes.fate import Fate
from torture.facts.axes.hypervisor import Image
from torture.facts.axes.pool_disks import Layout
from torture.facts.axes.setting import ZFS_NOCACHEFLUSH, ZIL_NOCACHEFLUSH
from torture.facts.axes.sync import NfsExport, Sync
from torture.facts.recording.disks import Persistence
from torture.facts.recording.intent_log import TXG_ROLES, Role
from torture.oracles.audit.commits import LATE_MS
from torture.oracles.audit.invariants import Invariant
from torture.oracles.verdict.guarantee import Guarantee, Terms


def acknowledged_sync_of(cell: Cell) -> Sync:
    """The sync level of writes acknowledged after a flush, or an equivalent.

    A server that answers before data are stable turns standard into disabled. So does a client, or
    its hypervisor, that never asks for stable data. `always` is unaffected: ZFS obeys it before it
    answers the server.
    """
    return Sync.DISABLED if names_are_volatile_in(cell) else flushed_data_sync_of(cell)


def names_are_volatile_in(cell: Cell) -> bool:
    """Whether the client receives answers before names are durable; with always ZFS prevents it."""
    return cell[TRANSPORT].traits.is_metadata_volatile and cell[SYNC] is Sync.STANDARD


def flushed_data_sync_of(cell: Cell) -> Sync:
    """The sync level of data alone, without new, moved or removed names."""
    if cell[SYNC] in cell[TRANSPORT].traits.unflushed:
        return Sync.DISABLED
    if cell[NFS_EXPORT] is NfsExport.ASYNC and cell[SYNC] is Sync.STANDARD:
        return Sync.DISABLED
    return cell[SYNC]


def completed_sync_of(cell: Cell) -> Sync:
    """The sync level of data that the client's disk or server completed.

    It is `always` where a completed write alone has to be durable.
    """
    sync = flushed_data_sync_of(cell)
    match cell[TRANSPORT].traits.completed, sync:
        case CompletedWrite.IN_LOG, Sync.STANDARD:
            return Sync.ALWAYS
        case CompletedWrite.IN_PAGE_CACHE, Sync.ALWAYS:
            return Sync.STANDARD
        case _:
            return sync


_TXG_TIMEOUT_S = 5
"""ZFS's own `zfs_txg_timeout` (zfs(4))."""


def early_roles_in(cell: Cell) -> tuple[Role, ...]:
    """The roles of writes that ZFS sends to disk as they come: whole blocks of a file with O_DIRECT.

    zfsprops(7), `direct`, since OpenZFS 2.3. A program on the NAS itself makes such writes. An image
    has long blocks, other files have blocks of any length.
    """
    traits = cell[TRANSPORT].traits
    if not traits.is_local or traits.volume is not VolumeKind.DATASET:
        return ()
    return TXG_ROLES if cell[IMAGE] is Image.NONE else (Role.DATA,)


def late_ms_of(cell: Cell) -> int:
    """How long after an acknowledgement a transaction group may begin: longer where ZFS is set so.

    For ever, if a hypervisor acknowledges writes that it keeps: ZFS has nothing to commit.
    """
    if Sync.ALWAYS in cell[TRANSPORT].traits.unflushed:
        return sys.maxsize
    value = cell[SETTINGS].tunables.get("zfs_txg_timeout", "")
    timeout_s = int(value) if value.isdecimal() else _TXG_TIMEOUT_S
    return LATE_MS + max(0, timeout_s - _TXG_TIMEOUT_S) * 1000


def disks_keep_power(cell: Cell) -> bool:
    """Whether the cut takes nothing that the disks' caches hold."""
    return cell[EVENT] is not Event.POWER or cell[FATE] is Fate.CLIENT_ONLY


def guarantee_of(cell: Cell) -> Guarantee:
    """The guarantee that theory gives a cell.

    Disks and log devices that honour flushes are as good as those that keep everything. An intent
    log with one good leg left still works. Where ZFS is set not to flush, only devices that keep
    everything are good.

    Layouts, speeds, filesystems and the place or size of a written block change nothing.
    `logbias=throughput` writes blocks of data before the log blocks that point to them, and flushes
    both before it acknowledges (OpenZFS `module/zfs/dmu.c`, `dmu_sync_done`).

    Before an orderly reboot the target closes the volume, so that the page cache is written (Linux
    `block/bdev.c`, `blkdev_put_whole`). The last close of a zvol and an unmount wait until all is
    committed (OpenZFS `zvol_shutdown_zv`, `zfsvfs_teardown`). A panic writes nothing back.
    """
    honest = _guarantee_of(cell, acknowledged_sync_of(cell))
    may_be_dead = cell[NAS_LINK].fills_pool or may_give_up(cell)
    return Guarantee.MAY_GO_OFFLINE if may_be_dead and honest is Guarantee.SAFE else honest


_RETURNS_WITHIN_S = 60
"""The time in which an emulated NAS boots, imports and publishes."""


def may_give_up(cell: Cell) -> bool:
    """Whether the client's patience may end before the NAS is back (`Traits.waits_s`).

    No patience helps where a port answers without its volume. An NVMe host of Linux 6.12 gives its disk
    up at the first refusal (drivers/nvme/host/fabrics.c, `nvmf_should_reconnect`). Any NVMe host does at
    an empty list of namespaces (core.c, `nvme_scan_ns_list`). SCSI does not repeat a request that a
    target rejects (drivers/scsi/scsi_lib.c, `scsi_io_completion_action`). NFS returns ESTALE.
    """
    waits_s = dict(cell[TRANSPORT].traits.waits_s).get(cell[PATIENCE], math.inf)
    is_before = cell[NAS_LINK].is_of_link
    if cell[FATE] is not Fate.NAS_ONLY and not is_before:
        return False
    if cell[EARLY].order is not Early.IN_ORDER:
        return True
    away_s = max(cell[AWAY], cell[NAS_LINK].length_s if is_before else 0)
    return waits_s < away_s + _RETURNS_WITHIN_S


def content_is_safe_in(cell: Cell) -> bool:
    """Whether a cell whose names may go back guarantees the flushed content of its files all the same."""
    is_safe = _guarantee_of(cell, flushed_data_sync_of(cell)) is Guarantee.SAFE
    return names_are_volatile_in(cell) and is_safe


def keeps_flushed_data(cell: Cell) -> bool:
    """Whether theory promises that data which the client flushed outlive its NAS's loss of power."""
    together = cell.but(fate=Fate.BOTH_DIE.value, event=Event.POWER.value)
    return _guarantee_of(together, flushed_data_sync_of(cell)) is Guarantee.SAFE


def _guarantee_of(cell: Cell, acknowledged: Sync) -> Guarantee:
    """That of what is acknowledged with this sync level."""
    if cell[EVENT] is Event.REBOOT:
        return Guarantee.SAFE
    keeps_all = cell[DISKS] is Persistence.PLP
    is_of_lies = cell[DISKS] is Persistence.LYING or (cell[ZFS_NOCACHEFLUSH] and not keeps_all)
    if is_of_lies and not disks_keep_power(cell):
        return Guarantee.MAY_LOSE_POOL
    fate = cell[FATE]
    honest = cell[TRANSPORT].guarantee(sync=acknowledged, fate=fate)
    if honest is not Guarantee.SAFE or not _is_log_forgetful(cell):
        return honest
    return Guarantee.LOSES if fate is Fate.NAS_ONLY else Guarantee.ROLLS_BACK


def _is_log_forgetful(cell: Cell) -> bool:
    """Whether the cut may take the intent log's content; also where it was never flushed."""
    slog = cell[SLOG]
    if disks_keep_power(cell):
        return slog.is_forgetful and slog.gone_at_cut > 0
    if slog.is_forgetful or flushes_its_log(cell):
        return slog.is_forgetful
    on_data_disks = is_log_on_data_disks(cell) and cell[DISKS] is not Persistence.PLP
    return on_data_disks or any(leg is not Persistence.PLP for leg in slog.legs)


def is_log_on_data_disks(cell: Cell) -> bool:
    """Whether the intent log lies on the data disks (zfsprops(7), `logbias`)."""
    return not cell[SLOG].legs or cell[SETTINGS].properties.get("logbias") == "throughput"


def may_fail_before_cut(cell: Cell) -> bool:
    """Whether writers may fail amid the load: the pool is full, or its link was gone for too long."""
    link = cell[NAS_LINK]
    return link.fills_pool or (link.is_of_link and may_give_up(cell))


def must_lose(cell: Cell) -> bool:
    """Whether at least half of all cuts take acknowledged data that no transaction group has committed.

    The data are in the memory of the NAS alone, or their log lies on one device that forgets it. A cell
    that merely may lose something has no lower bound. Nor has one with an unflushed log on several
    devices: some of them may keep it.
    """
    if cell[EVENT] is Event.REBOOT or cell[FATE] is Fate.CLIENT_ONLY:
        return False
    if flushed_data_sync_of(cell) is Sync.DISABLED:
        # a hypervisor that lives still has all that it kept
        return not (cell[FATE] is Fate.NAS_ONLY and Sync.ALWAYS in cell[TRANSPORT].traits.unflushed)
    if not flushes_its_log(cell):
        return _is_log_forgetful(cell) and _is_log_on_one_device(cell)
    return _is_log_forgetful(cell) and not is_log_on_data_disks(cell)


def _is_log_on_one_device(cell: Cell) -> bool:
    if is_log_on_data_disks(cell):
        return cell[LAYOUT] is Layout.SINGLE
    return len(cell[SLOG].legs) - cell[SLOG].gone_at_cut == 1


def flushes_its_log(cell: Cell) -> bool:
    """Whether ZFS flushes its writes to its intent log, where it has one (zfs(4))."""
    return not (cell[ZIL_NOCACHEFLUSH] or cell[ZFS_NOCACHEFLUSH])


_ABOUT_THE_LOG = frozenset(
    {
        Invariant.ACKNOWLEDGED_IS_DURABLE,
        Invariant.RETURNED_IS_DURABLE,
        Invariant.LOG_CHAIN_IS_WHOLE,
        Invariant.COMPLETED_IS_DURABLE,
    }
)
_ABOUT_FLUSHES = _ABOUT_THE_LOG | {
    Invariant.TXG_IS_DURABLE,
    Invariant.UBERBLOCK_IS_DURABLE,
    Invariant.LABELS_TAKE_TURNS,
}


def waived_in(cell: Cell, *, issued_seq: int) -> dict[Invariant, int]:
    """The invariants that need flushes that ZFS is set not to send, or that administration breaks.

    Each has the recording's event from which on it is waived. `issued_seq` is the event before the
    administration's command. Losses count against the cell's guarantee, as in any cell. Invariants
    that need no flush count against ZFS.
    """
    administration = cell[ADMINISTRATION]
    own = frozenset[Invariant]() if administration is None else administration.waived
    return dict.fromkeys(own, issued_seq) | dict.fromkeys(_of_flushes(cell), 0)


def _of_flushes(cell: Cell) -> frozenset[Invariant]:
    if cell[ZFS_NOCACHEFLUSH]:
        return _ABOUT_FLUSHES
    return _ABOUT_THE_LOG if cell[ZIL_NOCACHEFLUSH] else frozenset()


def terms_of(cell: Cell, *, is_replay: bool = False) -> Terms:
    """The terms of a trial of this cell."""
    traits = cell[TRANSPORT].traits
    return Terms(
        tears_sectors=traits.tears_sectors,
        names_are_stable=traits.names_are_stable,
        content_is_safe=content_is_safe_in(cell),
        repeats_requests=traits.repeats_requests,
        client_lives=cell[FATE] is Fate.NAS_ONLY,
        nas_lives=cell[FATE] is Fate.CLIENT_ONLY,
        ends_in_order=cell[EVENT] is Event.REBOOT,
        former_returns=cell[EVENT] is Event.TAKEOVER and not is_replay,
        is_replay=is_replay,
        client_gives_up=may_give_up(cell),
        may_fail_before_cut=may_fail_before_cut(cell),
    )
