"""Published tables of practitioners about ZFS storage for virtual machines, in our own words (pure).

R1: gobonniego on FreeNAS 11.2. R2 and R3: ESXi on NFS. R4: `diskinfo -wS` of FreeBSD, and published
checks of single devices. R5: a comparison of log devices. R6: an ATTO-like sweep. A text of `theirs` is
empty where nothing is published. `ours` names the measurement that comes nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from torture.facts.axes.pool_disks import SlogClass
from torture.facts.speed.gobonniego_jobs import gobonniego_jobs
from torture.facts.speed.link import Link


class FigureKind(StrEnum):
    """A figure of a job, and its unit."""

    MS = "ms"
    MIB_PER_S = "MiB/s"
    MB_PER_S = "MB/s"
    PER_S = "per second"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ours:
    """The figure of a job of a cell; a ratio where it is `over` another one."""

    cell: str
    job: str
    kind: FigureKind
    link: str = ""
    device: str = ""
    """The class of a log device that is measured alone."""
    over: Ours | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRow:
    """A line of a table: a text and a measurement for each column."""

    words: str
    theirs: tuple[str, ...]
    ours: tuple[Ours | None, ...] = ()
    """Empty where nothing like it is measured."""
    ours_words: str = ""
    """The set-up of ours, where it differs."""

    @property
    def measured(self) -> Ours | None:
        """The first figure of ours; None where nothing like it is measured."""
        return next((one for one in self.ours if one is not None), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedTable:
    """A table; `why` explains from the write path how ours may differ."""

    name: str
    words: str
    summary: str
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    why: tuple[str, ...]


_RAIDZ_ISCSI = "iscsi-standard-noslog-raidz1x7-raw-bothdie"
_RAIDZ_GOBONNIEGO = "iscsi-standard-noslog-raidz1x7-ext4-gobonniego-bothdie"
GOBONNIEGO_THREADS = 2
_LOG_DEVICE_CELL = "iscsi-always-plp-raw-bothdie"
_COMMITTED = "syncwrite-64k-t1"
"""One writer: "a commit is forced after every write", and no two writes share a flush."""
_SHARED = "syncwrite-64k-t4"


def _ten_over_one(job: str, kind: FigureKind, cell: str = _RAIDZ_ISCSI) -> Ours:
    """10 GbE over 1 GbE."""
    one = Ours(cell=cell, job=job, kind=kind, link=Link.GBE1)
    return Ours(cell=cell, job=job, kind=kind, link=Link.GBE10, over=one)


def _by_gobonniego() -> tuple[Ours, ...]:
    kinds = (FigureKind.MIB_PER_S, FigureKind.MIB_PER_S, FigureKind.PER_S)
    write, read, iops = (job.name for job in gobonniego_jobs(GOBONNIEGO_THREADS))
    return tuple(
        _ten_over_one(job, kind, _RAIDZ_GOBONNIEGO)
        for job, kind in zip((read, write, iops), kinds, strict=True)
    )


def _stable(cell: str) -> tuple[Ours | None, ...]:
    """R2's columns: reads are not measured."""
    kinds = (FigureKind.MIB_PER_S, FigureKind.MS)
    writes = (Ours(cell=cell, job=_COMMITTED, kind=kind, link=Link.GBE1) for kind in kinds)
    return (None, None, *writes)


def _written(cell: str) -> tuple[Ours, ...]:
    return (Ours(cell=cell, job=_SHARED, kind=FigureKind.MB_PER_S, link=Link.GBE1),)


def _alone(device: SlogClass) -> tuple[Ours, ...]:
    job = "syncwrite-4k-t1"
    return (Ours(cell=_LOG_DEVICE_CELL, job=job, kind=FigureKind.MS, device=device),)


def _four_jobs(cell: str) -> tuple[Ours, ...]:
    """R5's columns."""
    random = [
        Ours(cell=cell, job=f"syncwrite-4k-t{threads}", kind=FigureKind.MS, link=Link.GBE10)
        for threads in (1, 4, 16)
    ]
    job = "write-128k-t1"
    return (*random, Ours(cell=cell, job=job, kind=FigureKind.MIB_PER_S, link=Link.GBE10))


def _lun_sectors(job: str) -> tuple[Ours, Ours]:
    """R6's columns: sectors of 4096 bytes over 512, and 10 GbE over 1 GbE."""
    small, large = (f"iscsi-standard-noslog-{lun}raw-bothdie" for lun in ("", "lun4k-"))
    kind = FigureKind.MIB_PER_S
    one = Ours(cell=small, job=job, kind=kind, link=Link.GBE1)
    return (
        Ours(cell=large, job=job, kind=kind, link=Link.GBE1, over=one),
        Ours(cell=small, job=job, kind=kind, link=Link.GBE10, over=one),
    )


R1 = PublishedTable(
    name="R1",
    words="10 GbE over 1 GbE, a VM's disk on a zvol over iSCSI, sync=standard",
    summary="sequential read 1.4 times, sequential write 10 times, IOPS 1.6 times",
    columns=("sequential read, times", "sequential write, times", "IOPS, times"),
    rows=(
        PublishedRow(
            words="seven disks of 4 TB (21,000 IOPS on 10 GbE)",
            theirs=("1.4", "10", "1.6"),
            ours=(
                _ten_over_one("coldread-128k-t1", FigureKind.MIB_PER_S),
                None,
                _ten_over_one("coldrandread-4k-t1", FigureKind.PER_S),
            ),
            ours_words="seven disks in raidz1, the NAS's memory empty",
        ),
        PublishedRow(
            words="by the NAS's memory",
            theirs=("", "", ""),
            ours=(
                _ten_over_one("read-128k-t1", FigureKind.MIB_PER_S),
                _ten_over_one("write-128k-t1", FigureKind.MIB_PER_S),
                _ten_over_one("randread-4k-t1", FigureKind.PER_S),
            ),
        ),
        PublishedRow(
            words="by gobonniego itself, on ext4, with less memory than its files have",
            theirs=("", "", ""),
            ours=_by_gobonniego(),
        ),
    ),
    why=(
        "With sync=standard such a write waits for no disk. ZFS has it in memory: the link is the bound. "
        "A cut loses the data that disks got only later.",
        "Reads from the NAS's memory have the link for their bound, too. Seven disks give two to three "
        "times what 1 GbE carries in a row, and a random read waits for one disk. Theirs were of both "
        "kinds.",
        "One read at a time waits for a round trip, and ten times the rate does not shorten that.",
    ),
)
R2 = PublishedTable(
    name="R2",
    words="stable writes over NFS, 1 GbE, hard disks",
    summary="async export 110 MiB/s, sync=disabled 69, no cache flush 16, with SLOG 50 (10 GbE), "
    "nothing below 1",
    columns=("read MiB/s", "read ms", "write MiB/s", "write ms"),
    rows=(
        PublishedRow(
            words="async export",
            theirs=("67", "341", "110", "153"),
            ours=_stable("nfs4-export_async-standard-noslog-files-bothdie"),
        ),
        PublishedRow(
            words="sync=disabled",
            theirs=("69", "198", "69", "1628"),
            ours=_stable("nfs4-disabled-noslog-files-bothdie"),
        ),
        PublishedRow(
            words="zfs_nocacheflush=1",
            theirs=("67", "760", "16", "1543"),
            ours=_stable("nfs4-standard-noslog-nocacheflush-files-bothdie"),
        ),
        PublishedRow(
            words="two SSDs as SLOG, 10 GbE",
            theirs=("650", "", "50", ""),
            ours=_stable("nfs4-standard-plp-sas-files-bothdie"),
            ours_words="a SAS SSD as SLOG",
        ),
        PublishedRow(
            words="nothing",
            theirs=("", "", "below 1", ""),
            ours=_stable("nfs4-standard-noslog-files-bothdie"),
        ),
    ),
    why=(
        "With an async export the server answers a commit before ZFS has written: the link is the bound.",
        "With sync=disabled ZFS answers a commit from memory, until its limit on dirty data delays it.",
        "zfs_nocacheflush=1 still writes a block of the log for each commit. It waits for that write, "
        "and not for a flush.",
        "With nothing of these, each commit waits until a disk has flushed a block of the log: 10 ms "
        "and more.",
        "Theirs is ESXi against FreeBSD, with a commit after every write. Ours is one writer of 64 KiB "
        "on Linux, which waits for each. Our SLOG is behind 1 GbE.",
    ),
)
R3 = PublishedTable(
    name="R3",
    words="stable writes over NFS onto three hard disks in raidz1",
    summary="intent log in the pool 8 MB/s, on an SSD 30 MB/s",
    columns=("write MB/s",),
    rows=(
        PublishedRow(
            words="intent log in the pool",
            theirs=("8",),
            ours=_written("nfs4-standard-noslog-raidz1-files-bothdie"),
        ),
        PublishedRow(
            words="on an SSD",
            theirs=("30",),
            ours=_written("nfs4-standard-plp-sata-raidz1-files-bothdie"),
            ours_words="a SATA SSD as SLOG",
        ),
    ),
    why=(
        "In the pool each commit waits for a flush of all three disks, and so for the slowest of them.",
        "A log device takes the block alone. The commit then waits for one device, and the link.",
        "The number of writers counts: commits that wait together share a block. Ours are four.",
    ),
)
R4 = PublishedTable(
    name="R4",
    words="one synchronous write of 4 KiB at a time onto a log device",
    summary="hard disk 10 ms and more, SATA SSD 1 ms, SAS SSD 0.1 ms, NVMe SSD 20-30 us, Optane "
    "10 us, NVDIMM 2.5 us",
    columns=("a synchronous write",),
    rows=(
        PublishedRow(words="hard disk", theirs=("tens of ms",), ours=_alone(SlogClass.HDD)),
        PublishedRow(words="hybrid SSHD", theirs=("about 1 ms, small writes",)),
        PublishedRow(
            words="consumer SATA SSD",
            theirs=("about 1 ms, often not safe without power",),
            ours=_alone(SlogClass.SATA_SSD),
            ours_words="SATA SSD",
        ),
        PublishedRow(words="enterprise SATA SSD", theirs=("about 1 ms",)),
        PublishedRow(words="Intel 710 (SATA)", theirs=("158 us",)),
        PublishedRow(
            words="enterprise SAS SSD",
            theirs=("about 0.1 ms",),
            ours=_alone(SlogClass.SAS_SSD),
            ours_words="SAS SSD",
        ),
        PublishedRow(words="consumer NVMe SSD", theirs=("1-2 ms",)),
        PublishedRow(words="Samsung 950 PRO (NVMe)", theirs=("2,091 us",)),
        PublishedRow(
            words="enterprise NVMe SSD",
            theirs=("20-30 us",),
            ours=_alone(SlogClass.NVME),
            ours_words="NVMe SSD",
        ),
        PublishedRow(words="early Optane", theirs=("tens of us to tens of ms",)),
        PublishedRow(
            words="Optane 900p",
            theirs=("as enterprise NVMe, or below",),
            ours=_alone(SlogClass.OPTANE),
            ours_words="Optane",
        ),
        PublishedRow(
            words="NVDIMM",
            theirs=("about 2.5 us (400,000 IOPS)",),
            ours=_alone(SlogClass.NVDIMM),
        ),
    ),
    why=(
        "Our devices are models with the published times. So this table tests the instrument, and not "
        "a device.",
        "A device with a volatile cache answers a write at once, and its flush takes the time. A "
        "protected one takes it for the write.",
        "The guest's own part of a write is in the figure, too: at most a tenth of it.",
    ),
)
R5 = PublishedTable(
    name="R5",
    words="log devices by class against sync=standard, iSCSI, hard disks",
    summary="one SAS SSD caps the pool's sequential writes; synchronous writes onto hard disks take "
    "10 to 30 ms, and gain by more threads",
    columns=("synchronous 4 KiB, 1 thread", "4 threads", "16 threads", "sequential 128 KiB"),
    rows=tuple(
        PublishedRow(words=words, theirs=theirs, ours=_four_jobs(f"iscsi-{cell}-raw-bothdie"))
        for words, cell, theirs in (
            ("sync=standard, no SLOG", "standard-noslog", ("", "", "", "the baseline")),
            (
                "sync=always, no SLOG",
                "always-noslog",
                ("10-30 ms", "gains by threads", "gains by threads", ""),
            ),
            ("sync=always, hard disk", "always-plp-hdd", ("", "", "", "")),
            ("sync=always, SATA SSD", "always-plp-sata", ("", "", "", "")),
            ("sync=always, SAS SSD", "always-plp-sas", ("", "", "", "the SSD is the cap")),
            ("sync=always, NVMe SSD", "always-plp", ("", "", "", "")),
        )
    ),
    why=(
        "With sync=always each byte passes the log before its write returns. One log device then is the "
        "bound of the whole pool.",
        "Without a SLOG each write waits for a flush of the pool's disks, which threads may share.",
    ),
)
R6 = PublishedTable(
    name="R6",
    words="sizes of blocks and of the LUN's sectors, iSCSI against NVMe/TCP",
    summary="1 GbE caps large blocks; sectors of 4096 bytes double large writes, and small ones more",
    columns=("4 KiB sectors over 512 bytes, times", "the faster link over 1 GbE, times"),
    rows=(
        PublishedRow(
            words="writes of 4 KiB", theirs=("above 2", ""), ours=_lun_sectors("write-4k-t1")
        ),
        PublishedRow(
            words="writes of 1 MiB",
            theirs=("about 2", "1 GbE is the cap"),
            ours=_lun_sectors("write-1024k-t1"),
        ),
    ),
    why=(
        "Behind a LUN of 512 bytes a client may write a part of the volume's block. ZFS then reads the "
        "block before it writes.",
        "A large block keeps the link busy for its whole length, and a small one waits for round trips.",
    ),
)
TABLES = (R1, R2, R3, R4, R5, R6)
