"""The pool: made before the load, imported after the cut. Commands only; the trial runs them.

The speeds of the data disks and of the classes of log devices, from published figures.

The latencies are of one synchronous 4 KiB write at a time. Users compare log devices by this
measure: `diskinfo -wS` on FreeBSD takes it, and so does fio with sync=1 and queue depth 1. r320683
of FreeBSD's base, which added `diskinfo -wS`, describes it:
- hard disk 10 ms and more
- consumer SATA SSD about 1 ms
- enterprise SAS SSD about 0.1 ms
- enterprise NVMe SSD 20-30 us
- Optane 900p at or below that (Intel specifies 10 us for its sister P4800X)
- NVDIMM about 2.5 us (400,000 a second)

Bandwidths only bound: SATA's 6 Gb/s and SAS's 12 Gb/s links carry 600 and 1,200 MB/s after 8b/10b
coding. Intel specifies up to 2,000 MB/s written for its NVMe DC P3700 and for the Optane P4800X.
The hard disk is bound by its 10 ms; no bandwidth of the NVDIMM is published. Reads
of a log cost nothing: only an import has them, and no figure is published for that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from torture.choices.administration.protocol import SPARES
from torture.choices.matrix.cells import (
    ADMINISTRATION,
    DISK_SECTOR,
    DISKS,
    LAYOUT,
    SETTINGS,
    SLOG,
    SLOG_CLASS,
    SPECIAL_VDEV,
    TRANSPORT,
    Cell,
)
from torture.choices.volumes import POOL, VolumeKind
from torture.facts.axes.pool_disks import Layout, SlogClass
from torture.facts.recording.disks import Persistence, Profile, ShelfDisk
from torture.shell import physical_sector_of, wait_for_path, write_cache_of

_MB_PER_MIB = 1024 * 1024 / 1_000_000
_MIB_OF_WRITE = 4 / 1024


def _cached(
    sync_us: float, *, write_us: float = 0, mb_per_s: int = 0, serial: bool = False
) -> Profile:
    """A device with a write cache: a write is quick, its flush waits."""
    mib_per_s = round(mb_per_s / _MB_PER_MIB)
    flush_us = _latency_us(sync_us, mib_per_s) - write_us
    return Profile(write_us=write_us, flush_us=flush_us, mib_per_s=mib_per_s, serial=serial)


def _protected(sync_us: float, *, mb_per_s: int = 0) -> Profile:
    """A device whose completed writes are safe by design: the write waits, a flush does nothing."""
    mib_per_s = round(mb_per_s / _MB_PER_MIB)
    return Profile(write_us=_latency_us(sync_us, mib_per_s), mib_per_s=mib_per_s)


def _latency_us(sync_us: float, mib_per_s: int) -> float:
    """The time of a published 4 KiB write without its transfer, which the shelf adds itself."""
    transfer_us = _MIB_OF_WRITE / mib_per_s * 1e6 if mib_per_s else 0.0
    return round(sync_us - transfer_us, 3)


LOG_PROFILES = {
    SlogClass.HDD: _cached(10_000, serial=True),
    SlogClass.SATA_SSD: _cached(1_000, mb_per_s=600),
    SlogClass.SAS_SSD: _protected(100, mb_per_s=1_200),
    SlogClass.NVME: _protected(25, mb_per_s=2_000),
    SlogClass.OPTANE: _protected(10, mb_per_s=2_000),
    SlogClass.NVDIMM: _protected(2.5),
}
"""Log devices: one synchronous 4 KiB write takes the published time."""


_READ_US, _SEEK_US = 100, 10_000
"""A command's round trip to an SSD, and the arm of a hard disk."""


def that_takes_time_to_read(disk: ShelfDisk) -> ShelfDisk:
    """The data disk with the times of its reads: that of a seek for a hard disk, else a command's.

    Only a measurement asks for them: imports would take seconds longer, and no promise depends on it.
    """
    if disk.persistence is Persistence.VOLATILE:
        return replace(disk, profile=replace(disk.profile, seek_us=_SEEK_US))
    return replace(disk, profile=replace(disk.profile, read_us=_READ_US))


DATA_PROFILES = {
    Persistence.PLP: _protected(100, mb_per_s=1_200),
    Persistence.VOLATILE: _cached(10_000, write_us=100, mb_per_s=200),
    Persistence.LYING: _cached(1_000, write_us=100, mb_per_s=600),
}
"""Data disks as users buy them: an enterprise SAS SSD, a hard disk with its cache on, a consumer
SATA SSD. A write into a cache takes its command's round trip, some 0.1 ms."""


_OF_16K = ("", "16K", "64K", "128K")
"""Sizes of a volume's blocks that are a multiple of 16 KiB."""
_DATA_MIB = 4096
_SPECIAL_MIB = 2048
_LOG_MIB = 1024
_BY_SERIAL = "/dev/disk/by-id/virtio-"
SETTLE = "udevadm settle --timeout=20 || udevadm settle --timeout=20"
"""Twice, because udevd rarely closes the connection of the first call ("Broken pipe")."""

_DATA_VDEVS: dict[Layout, tuple[tuple[str, ...], int]] = {
    Layout.SINGLE: ((), 1),
    Layout.MIRRORED: (("mirror",), 2),
    Layout.RAIDZ1: (("raidz1",), 3),
    Layout.RAIDZ1_SEVEN: (("raidz1",), 7),
    Layout.RAIDZ2: (("raidz2",), 4),
    Layout.DRAID1: (("draid1:2d:4c:1s",), 4),
}
"""The words of `zpool create` for the data disks, and how many disks they are."""


def log_disks(cell: Cell) -> tuple[ShelfDisk, ...]:
    """The log devices of a cell, of its class; several are a mirror."""
    return tuple(
        ShelfDisk(
            serial=f"slog{number}",
            size_mib=_LOG_MIB,
            persistence=persistence,
            profile=LOG_PROFILES[cell[SLOG_CLASS]],
        )
        for number, persistence in enumerate(cell[SLOG].legs)
    )


def gone_at_cut(cell: Cell, seed: int) -> frozenset[str]:
    """The serials of the disks that are gone after the cut of the trial with this seed."""
    serials = [disk.serial for disk in log_disks(cell)]
    count = cell[SLOG].gone_at_cut
    if count == len(serials):
        return frozenset(serials)
    generator = random.Random(f"gone/{seed}")
    return frozenset(serials.pop(serials.index(generator.choice(serials))) for _ in range(count))


def pool_disks(cell: Cell) -> tuple[ShelfDisk, ...]:
    """Every disk the NAS of this cell needs, data disks first; spare ones join its pool later."""
    sector = cell[DISK_SECTOR]
    disks = (
        *_data_disks(cell),
        *log_disks(cell),
        *_spare_disks(cell),
        *_special_disks(cell),
    )
    return tuple(
        replace(disk, sector_bytes=sector.logical, physical_sector_bytes=sector.physical)
        for disk in disks
    )


def _spare_disks(cell: Cell) -> tuple[ShelfDisk, ...]:
    """The disks that an administration adds to the pool."""
    administration = cell[ADMINISTRATION]
    first = _data_disks(cell)[0]
    count = 0 if administration is None else administration.spares
    return tuple(replace(first, serial=f"{SPARES}{number}") for number in range(count))


def _special_disks(cell: Cell) -> tuple[ShelfDisk, ...]:
    if not cell[SPECIAL_VDEV]:
        return ()
    return (replace(_data_disks(cell)[0], serial="special0", size_mib=_SPECIAL_MIB),)


def _data_disks(cell: Cell) -> tuple[ShelfDisk, ...]:
    _, count = _DATA_VDEVS[cell[LAYOUT]]
    persistence = cell[DISKS]
    return tuple(
        ShelfDisk(
            serial=f"data{number}",
            size_mib=_DATA_MIB,
            persistence=persistence,
            profile=DATA_PROFILES[persistence],
        )
        for number in range(count)
    )


FILL = f"""set -eu
zfs create -o canmount=off {POOL}/fill
reserved=0
for left_kib in 16384 4096 1024 256 64 16; do
    more=$(($(zfs get -Hp -o value available {POOL}) - left_kib * 1024))
    test $more -gt 0 || continue
    zfs set refreservation=$((reserved + more)) {POOL}/fill && reserved=$((reserved + more))
done
test $reserved -gt 0
"""
"""Shell: another dataset reserves all space that is left (zfsprops(7)), in ever smaller steps, as the
load writes on. A write then fails as in a full pool, by the same accounting (OpenZFS
module/zfs/dsl_dir.c, `dsl_dir_tempreserve_impl`)."""
FREE = f"zfs destroy {POOL}/fill"
"""Shell: an operator makes room again."""


def whole_on(cell: Cell) -> tuple[str, ...]:
    """The disks that each hold a whole copy of a block at one place; none where blocks are split."""
    administration = cell[ADMINISTRATION]
    if cell[LAYOUT].splits_blocks or (administration is not None and administration.moves_blocks):
        return ()
    return tuple(disk.serial for disk in _data_disks(cell))


def shows_metadata_by_length(cell: Cell) -> bool:
    """Whether a write's length separates metadata from data, as in `torture.facts.recording.intent_log`.

    Data are whole blocks of a zvol then. Files have blocks of any length, and so have parts of
    blocks and compressed blocks.
    """
    properties = cell[SETTINGS].properties
    is_whole = not cell[LAYOUT].splits_blocks and properties.get("compression", "off") == "off"
    is_zvol = cell[TRANSPORT].traits.volume is VolumeKind.ZVOL
    has_16k = is_zvol and properties.get("volblocksize", "") in _OF_16K
    return is_whole and has_16k


def wait_for_disks_script(disks: Sequence[ShelfDisk]) -> str:
    """Shell: return once udev knows each of these disks; fail when one differs from its configuration.

    From 2.3 on ZFS skips flushes for a disk without a write cache: nothing would be tested. ZFS
    chooses its `ashift` by the physical sector.
    """
    lines = ["set -eu"]
    for disk in disks:
        link = f"{_BY_SERIAL}{disk.serial}"
        lines += [
            wait_for_path(link),
            f'test "$({write_cache_of(link)})" = "write back"',
            f'test "$({physical_sector_of(link)})" = {disk.physical_sector_bytes}',
        ]
    return "\n".join([*lines, SETTLE])


def cache_scripts(disks: Sequence[ShelfDisk]) -> dict[str, str]:
    """Scripts that print the mode of each disk's write cache, by serial."""
    return {disk.serial: write_cache_of(f"{_BY_SERIAL}{disk.serial}") for disk in disks}


def flush_disks_script(disks: Sequence[ShelfDisk]) -> str:
    """Shell: flush each of these disks by its block device, without ZFS (`blkdev_fsync`, Linux)."""
    return "\n".join(["set -eu", *(f"sync --data {_BY_SERIAL}{disk.serial}" for disk in disks)])


def create_script(cell: Cell) -> str:
    """Shell: make the pool."""
    serials = {disk.serial for disk in pool_disks(cell)}
    kind, _ = _DATA_VDEVS[cell[LAYOUT]]
    logs = [disk.serial for disk in log_disks(cell)]
    vdevs = (
        *kind,
        *(disk.serial for disk in _data_disks(cell)),
        *(word for disk in _special_disks(cell) for word in ("special", disk.serial)),
        *("log", "mirror")[: len(logs)],
        *logs,
    )
    words = [f"{_BY_SERIAL}{word}" if word in serials else word for word in vdevs]
    administration = cell[ADMINISTRATION]
    of_pool = (f"-o {name}={value}" for name, value in cell[SETTINGS].pool_properties.items())
    options = "" if administration is None else administration.pool_options
    return " ".join(
        (
            "zpool create -f -o cachefile=none -O compression=off",
            *of_pool,
            *filter(None, [options]),
            POOL,
            *words,
        )
    )


def vdev_kinds(cell: Cell) -> tuple[str, ...]:
    """The vdevs of the pool that are no disks, as `zpool list -v` begins their lines."""
    kind, _ = _DATA_VDEVS[cell[LAYOUT]]
    logs = log_disks(cell)
    special = ("special",) if cell[SPECIAL_VDEV] else ()
    return (*kind, *special, *("logs", "mirror")[: len(logs)])


def make_script(cell: Cell) -> str:
    """Shell: make the pool, with a second and a third try.

    The writes of zpool onto a disk make udev renew the partitions' links. A link that is missing
    when the kernel opens it gives "no such pool or dataset". ZFS 2.3.9 and 2.4.4 do not wait for
    the link (OpenZFS #18993).
    """
    create = create_script(cell)
    again = f"{{ {SETTLE}; {create}; }}"
    return f"{create} || {again} || {again}"


def import_command(*options: str) -> tuple[str, ...]:
    """Import the pool from its disks by serial, as after a boot."""
    return ("zpool", "import", "-d", "/dev/disk/by-id", "-o", "cachefile=none", *options, POOL)


REFUSALS = ("tail", "-n", "300", "/proc/spl/kstat/zfs/dbgmsg")
"""Print ZFS's own messages about a refused import: zpool reports little more than the refusal
(`zfs_dbgmsg`)."""
SYNC = ("zpool", "sync", POOL)
END_HEARTBEAT = f"zpool set multihost=off {POOL}"
"""Shell: let a pool with `multihost` stand still."""
TRIM = ("zpool", "trim", POOL)
"""Report free space to the disks: the command returns once this runs in the background."""
DIRTY_LABELS = ("zpool", "set", "comment=torture", POOL)
"""Write labels: only a transaction group that changed the pool's configuration writes them. Setting
its comment is a change, even to the same value (OpenZFS `module/zfs/spa.c`, `spa_sync_props`)."""
FREE_LOG = ("sh", "-c", "; ".join([" ".join(SYNC)] * 2))
"""Free blocks of the intent log. The transaction group that contains a block's records frees it,
and ZFS may overwrite it two groups later. One `zpool sync` commits three groups for that (OpenZFS
`module/zfs/txg.c`, `txg_wait_synced_flags`). The second `zpool sync` frees the blocks that
were written beside the first."""
BLOCKS = ("/usr/lib/torture/zdb", "-e", "-p", "/dev/disk/by-id", "-bc", POOL)
"""`-e`: by the disks' own labels, as the pool is in no cache file. It bypasses every cache of the
disks (OpenZFS `lib/libzpool/kernel.c`, `zfs_file_open`: O_DIRECT). `-bcc` would read all data once
more: 6 s under emulation, and the scrub has just read every copy of it (zdb(8))."""
SCRUB = ("zpool", "scrub", "-w", POOL)
