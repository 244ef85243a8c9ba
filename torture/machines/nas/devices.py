"""The speeds of the data disks and of the classes of log devices, from published figures.

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

from dataclasses import replace

from torture.facts.axes.pool_disks import SlogClass
from torture.facts.recording.disks import Persistence, Profile, ShelfDisk

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
