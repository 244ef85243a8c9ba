"""The write paths of a measurement's jobs, counted at its end from the shelf's recording."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from torture.choices.matrix.axes import LAYOUT
from torture.choices.matrix.cells import Cell
from torture.facts.axes.pool_disks import Layout
from torture.facts.recording.events import load_part
from torture.features.speed.documents import MeasuredJob
from torture.features.speed.jobs.jobs import JobEnd, Pattern, SpeedJob
from torture.features.speed.jobs.write_path import ClientWork, JobSpan, write_path_of
from torture.features.speed.jobs.written_places import PoolShape
from torture.machines.nas.pool import log_disks, pool_disks
from torture.machines.shelf.server import Shelf

SETTLING_MAX = 10
"""The slow motion of disks that settle after a counted job, at most.

Their requests are timed in slow motion, too. More would take minutes.
"""
_DATA = "data"
_MS_PER_S = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedJob:
    """A job, and its events where its write path is to be counted."""

    job: MeasuredJob
    span: JobSpan | None
    work: ClientWork


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """The shelf that records a measurement's disks."""

    shelf: Shelf
    shape: PoolShape

    def last_event(self) -> int:
        """The number of the last event so far; raises what `Control.status` raises."""
        return self.shelf.control.status().seq

    def counted(self, ended: EndedJob) -> MeasuredJob:
        """The job with its write path. Raises `HarnessError` for an unreadable recording."""
        if ended.span is None:
            return ended.job
        span = ended.span
        part = load_part(self.shelf.recording, first=span.first, last=span.last)
        return replace(ended.job, write_path=write_path_of(part, span, ended.work, self.shape))


def work_of(name: str, end: JobEnd, *, warm_up_s: float, times: float) -> ClientWork:
    """The client's work in a job whose `end` is so many `times` as slow as in real time."""
    pattern = SpeedJob.parse(name).pattern
    return ClientWork(
        operations=end.operations,
        bytes=0 if pattern.is_read else end.bytes,
        run_ms=end.run_ms,
        warm_up_share=warm_up_s * _MS_PER_S / end.run_ms if end.run_ms else 0.0,
        sync_ms=end.mean_ms / times if pattern is Pattern.SYNC_WRITE else None,
    )


def shape_of(cell: Cell) -> PoolShape:
    """The pool of a cell. Addresses in a draid, or beside a special vdev, are not read."""
    serials = [disk.serial for disk in pool_disks(cell)]
    data = [serial for serial in serials if serial.startswith(_DATA)]
    logs = tuple(disk.serial for disk in log_disks(cell))
    if cell[LAYOUT] is Layout.DRAID1 or len(data) + len(logs) < len(serials):
        return PoolShape(logs=logs, columns=0)
    return PoolShape(logs=logs, columns=len(data) if cell[LAYOUT].splits_blocks else 1)
