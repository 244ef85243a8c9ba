"""The published tables that the suite measures: their cells, jobs and links, and their figures.

The tables are those of practitioners. A question's rows are in the order of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from msgspec import structs

from torture.choices.matrix.cells import Cell
from torture.features.speed.documents import MeasuredPlace
from torture.features.speed.jobs import published
from torture.features.speed.jobs.jobs import Link, gobonniego_jobs
from torture.features.speed.jobs.published import Curve, PublishedTable, Sweep
from torture.features.speed.tasks import MeasureOrder


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


def _question(table: PublishedTable, rows: Iterable[Row]) -> Question:
    """A published table, with the rows that are measured."""
    return Question(name=table.name, words=table.words, published=table.summary, rows=tuple(rows))


def _rows(table: PublishedTable, *orders: MeasureOrder) -> Iterator[Row]:
    """The rows of a published table that have a measurement of ours: of one order, or of its own."""
    measured = [(row, ours) for row in table.rows if (ours := row.measured) is not None]
    for (row, ours), order in zip(measured, orders * (len(measured) // len(orders)), strict=True):
        own = structs.replace(order, device=ours.device)
        yield Row(words=row.ours_words or row.words, cell=ours.cell, order=own)


def _swept(sweep: Sweep) -> Iterator[Row]:
    """A row for each cell of a picture, over the links of its curves."""
    by_cell: dict[str, list[Curve]] = {}
    for curve in sweep.curves:
        by_cell.setdefault(curve.ours[0].cell, []).append(curve)
    for cell, curves in by_cell.items():
        order = MeasureOrder(
            jobs=tuple(one.job for one in curves[0].ours),
            links=tuple(Link(curve.ours[0].link) for curve in curves),
        )
        yield Row(words=curves[0].words.rpartition(", ")[0], cell=cell, order=order)


_LOG_DEVICE = MeasureOrder(
    place=MeasuredPlace.LOG_DEVICE, jobs=("syncwrite-4k-t1",), size_mib=64, run_s=5
)
_COMMITTED = MeasureOrder(jobs=("syncwrite-64k-t1",), links=(Link.GBE1,), size_mib=64)
_SHARED = structs.replace(_COMMITTED, jobs=("syncwrite-64k-t4",))
_BY_LINKS = MeasureOrder(
    jobs=("read-128k-t1", "write-128k-t1", "randread-4k-t1"), links=(Link.GBE1, Link.GBE10)
)
_FROM_DISKS = structs.replace(
    _BY_LINKS,
    jobs=("coldread-128k-t1", "coldrandread-4k-t1"),
    size_mib=512,
    warm_up_s=6.0,
    run_s=12.0,
    modelled_s=0.8,
)
"""ZFS reads ahead more and more: a row of reads begins with seeks, which the warm-up takes."""
_BY_THREADS = MeasureOrder(
    jobs=("syncwrite-4k-t1", "syncwrite-4k-t4", "syncwrite-4k-t16", "write-128k-t1"),
    links=(Link.GBE10,),
)
_BY_GOBONNIEGO = MeasureOrder(
    jobs=tuple(job.name for job in gobonniego_jobs(threads=2)),
    links=_BY_LINKS.links,
    size_mib=96,
)
_BY_HYPERVISOR = MeasureOrder(
    jobs=("syncwrite-4k-t1", "write-128k-t1", "randread-4k-t1"), links=(Link.GBE10,)
)
*_R1_ROWS, _GOBONNIEGO_ROW = _rows(published.R1, _FROM_DISKS, _BY_LINKS, _BY_GOBONNIEGO)
R1 = _question(published.R1, _R1_ROWS)
GOBONNIEGO = replace(_question(published.R1, [_GOBONNIEGO_ROW]), name="R1-gobonniego")
"""Measured where the user names a gobonniego."""
R2 = _question(published.R2, _rows(published.R2, _COMMITTED))
R3 = _question(published.R3, _rows(published.R3, _SHARED))
R4 = _question(published.R4, _rows(published.R4, _LOG_DEVICE))
R5 = _question(published.R5, _rows(published.R5, _BY_THREADS))
R6 = _question(published.R6, _swept(published.R6.sweeps[0]))
R7 = _question(published.R7, _rows(published.R7, _BY_HYPERVISOR))
QUESTIONS = (R4, R2, R3, R1, GOBONNIEGO, R5, R6, R7)
QUICK, DEFAULT = (R4,), (R4, R2, R3, R1)


def cell_of(row: Row) -> Cell:
    """The cell of a row."""
    return Cell.parse(row.cell)
