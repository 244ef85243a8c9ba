"""The published tables that the suite measures: their cells, jobs and links, and their figures.

The tables are those of practitioners. A question's rows are in the order of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.matrix.cells import Cell
from torture.facts.axes.pool_disks import SlogClass
from torture.facts.speed.link import Link
from torture.facts.speed.measured_document import MeasuredPlace
from torture.records.record.measure_order import MeasureOrder


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of a table: its words, its cell and jobs."""

    words: str
    cell: str
    order: MeasureOrder


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A published table."""

    name: str
    words: str
    published: str
    rows: tuple[Row, ...]


_SYNC_4K = ("syncwrite-4k-t1",)
_CLASS_WORDS = {
    SlogClass.HDD: "hard disk",
    SlogClass.SATA_SSD: "SATA SSD",
    SlogClass.SAS_SSD: "SAS SSD",
    SlogClass.NVME: "NVMe SSD",
    SlogClass.OPTANE: "Optane",
    SlogClass.NVDIMM: "NVDIMM",
}


def _class_row(slog_class: SlogClass) -> Row:
    order = MeasureOrder(
        place=MeasuredPlace.LOG_DEVICE, device=slog_class, jobs=_SYNC_4K, size_mib=64, run_s=5
    )
    return Row(words=_CLASS_WORDS[slog_class], cell="iscsi-always-plp-raw-bothdie", order=order)


def _stable_nfs(words: str, cell: str) -> Row:
    order = MeasureOrder(jobs=("syncwrite-64k-t4",), links=(Link.GBE1,), size_mib=64)
    return Row(words=words, cell=cell, order=order)


def _raidz_nfs(words: str, cell: str) -> Row:
    order = MeasureOrder(jobs=("syncwrite-64k-t4",), links=(Link.GBE1,), size_mib=64)
    return Row(words=words, cell=cell, order=order)


R1 = Question(
    name="R1",
    words="10 GbE over 1 GbE, a VM's disk on a zvol over iSCSI, sync=standard",
    published="sequential read 1.4 times, sequential write 10 times, IOPS 1.6 times",
    rows=(
        Row(
            words="three disks in raidz1",
            cell="iscsi-standard-noslog-raidz1-raw-bothdie",
            order=MeasureOrder(
                jobs=("read-128k-t1", "write-128k-t1", "randread-4k-t1"),
                links=(Link.GBE1, Link.GBE10),
            ),
        ),
    ),
)
R2 = Question(
    name="R2",
    words="stable writes over NFS, 1 GbE, hard disks",
    published="async export 110 MiB/s, sync=disabled 69, no cache flush 16, with SLOG 50 (10 GbE), "
    "nothing below 1",
    rows=(
        _stable_nfs("async export", "nfs4-export_async-standard-noslog-files-bothdie"),
        _stable_nfs("sync=disabled", "nfs4-disabled-noslog-files-bothdie"),
        _stable_nfs("zfs_nocacheflush=1", "nfs4-standard-noslog-nocacheflush-files-bothdie"),
        _stable_nfs("a SAS SSD as SLOG", "nfs4-standard-plp-sas-files-bothdie"),
        _stable_nfs("nothing", "nfs4-standard-noslog-files-bothdie"),
    ),
)
R3 = Question(
    name="R3",
    words="stable writes over NFS onto three hard disks in raidz1",
    published="intent log in the pool 8 MB/s, on an SSD 30 MB/s",
    rows=(
        _raidz_nfs("intent log in the pool", "nfs4-standard-noslog-raidz1-files-bothdie"),
        _raidz_nfs("a SATA SSD as SLOG", "nfs4-standard-plp-sata-raidz1-files-bothdie"),
    ),
)
R4 = Question(
    name="R4",
    words="one synchronous write of 4 KiB at a time onto a log device",
    published="hard disk 10 ms and more, SATA SSD 1 ms, SAS SSD 0.1 ms, NVMe SSD 20-30 us, Optane "
    "10 us, NVDIMM 2.5 us",
    rows=tuple(map(_class_row, SlogClass)),
)
R5 = Question(
    name="R5",
    words="log devices by class against sync=standard, iSCSI, hard disks",
    published="one SAS SSD caps the pool's sequential writes; synchronous writes onto hard disks take "
    "10 to 30 ms, and gain by more threads",
    rows=tuple(
        Row(
            words=words,
            cell=f"iscsi-{cell}-raw-bothdie",
            order=MeasureOrder(
                jobs=("syncwrite-4k-t1", "syncwrite-4k-t4", "syncwrite-4k-t16", "write-128k-t1"),
                links=(Link.GBE10,),
            ),
        )
        for words, cell in (
            ("sync=standard, no SLOG", "standard-noslog"),
            ("sync=always, no SLOG", "always-noslog"),
            ("sync=always, hard disk", "always-plp-hdd"),
            ("sync=always, SATA SSD", "always-plp-sata"),
            ("sync=always, SAS SSD", "always-plp-sas"),
            ("sync=always, NVMe SSD", "always-plp"),
        )
    ),
)
R6 = Question(
    name="R6",
    words="sizes of blocks and of the LUN's sectors, iSCSI against NVMe/TCP",
    published="1 GbE caps large blocks; sectors of 4096 bytes double large writes, and small ones more",
    rows=tuple(
        Row(
            words=f"{words}, sectors of {sector} bytes",
            cell=f"{transport}-standard-noslog{lun}-raw-bothdie",
            order=MeasureOrder(
                jobs=tuple(
                    f"write-{kib:g}k-t1" for kib in (0.5, 4, 64, 1024, 8192) if kib >= least
                ),
                links=(Link.GBE1, Link.GBE10),
            ),
        )
        for words, transport in (("iSCSI", "iscsi"), ("NVMe/TCP", "nvme_tcp_single"))
        for sector, lun, least in ((512, "", 0.5), (4096, "-lun4k", 4))
    ),
)
QUESTIONS = (R4, R2, R3, R1, R5, R6)
QUICK, DEFAULT = (R4,), (R4, R2, R3, R1)


def cell_of(row: Row) -> Cell:
    """The cell of a row."""
    return Cell.parse(row.cell)
