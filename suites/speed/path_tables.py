"""The write paths of a published table's rows: bytes by place, flushes, and waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from rich import box
from rich.table import Table

from suites.speed.questions import Question
from suites.speed.tables import documents_of
from torture.features.speed.documents import MeasuredJob
from torture.features.speed.jobs.slow_motion import SHARE_MAX
from torture.features.speed.jobs.write_path import PathPlace, SyncWait, Traffic, WritePath
from torture.features.speed.trade.write_path_picture import PathOfJob
from torture.records.record.trials import TrialRecord

_WORDS = {
    PathPlace.ZIL_POOL: "ZIL, pool",
    PathPlace.ZIL_SLOG: "ZIL, SLOG",
    PathPlace.POINTED: "pointed to",
    PathPlace.DATA: "data",
    PathPlace.METADATA: "metadata",
    PathPlace.UBERBLOCK: "uberblocks",
}
_WAITS = ("zil_ms", "flush_ms", "both_ms", "rest_ms")


@dataclass(frozen=True, kw_only=True, slots=True)
class PathFigure:
    """The counted jobs of a row over a link, together."""

    row: str
    job: str
    link: str
    counted: tuple[MeasuredJob, ...]

    @property
    def path(self) -> WritePath:
        """One path for all: bytes and requests are sums, waits and medians are means of the jobs'."""
        paths = self._paths
        written = sum(sum(one.bytes for one in path.places.values()) for path in paths)
        client_bytes = sum(path.client_bytes for path in paths)
        late = [one for path in paths if (one := path.late_share) is not None]
        per_operation = [one for path in paths if (one := path.flushes_per_operation) is not None]
        return WritePath(
            places=_together([path.places for path in paths]),
            flushes=_together([path.flushes for path in paths]),
            client_operations=sum(path.client_operations for path in paths),
            client_bytes=client_bytes,
            amplification=written / client_bytes if client_bytes else None,
            late_share=mean(late) if late else None,
            flushes_per_operation=mean(per_operation) if per_operation else None,
            wait=_mean_wait([path.wait for path in paths if path.wait is not None]),
        )

    @property
    def _paths(self) -> list[WritePath]:
        return [job.write_path for job in self.counted if job.write_path is not None]

    @property
    def is_of_model(self) -> bool:
        """Whether its times are the model's; otherwise they are the emulator's, and only counts hold."""
        return max(job.emulator_share for job in self.counted) <= SHARE_MAX

    def drawn(self) -> PathOfJob:
        """For the picture."""
        return PathOfJob(
            words=self.row, path=self.path, mean_ms=mean(job.mean_ms for job in self.counted)
        )

    def as_json(self) -> dict[str, Any]:
        """As the table's file has it: all jobs together, and each job."""
        head: dict[str, Any] = {"row": self.row, "job": self.job, "link": self.link}
        head |= {"is_of_model": self.is_of_model}
        return head | self.path.as_json() | {"jobs": [path.as_json() for path in self._paths]}


def paths_of(question: Question, records: Sequence[TrialRecord]) -> list[PathFigure]:
    """The counted rows of a table, in their order; none where no shelf recorded a NAS."""
    return [
        PathFigure(row=row, job=counted[0].job, link=counted[0].link, counted=counted)
        for row, counted in _counted(question, records)
    ]


def _counted(
    question: Question, records: Sequence[TrialRecord]
) -> Iterator[tuple[str, tuple[MeasuredJob, ...]]]:
    for row in question.rows:
        jobs = [job for document in documents_of(row, records) for job in document.jobs]
        for link in row.order.links:
            for name in row.order.jobs:
                counted = tuple(
                    job
                    for job in jobs
                    if (job.link, job.job) == (link, name) and job.write_path is not None
                )
                if counted:
                    yield row.words, counted


def _together(several: Sequence[dict[str, Traffic]]) -> dict[str, Traffic]:
    names = dict.fromkeys(name for one in several for name in one)
    found = {name: [one[name] for one in several if name in one] for name in names}
    return {
        name: Traffic(
            requests=sum(one.requests for one in own),
            bytes=sum(one.bytes for one in own),
            timed=sum(one.timed for one in own),
            sum_ms=sum(one.sum_ms for one in own),
            median_ms=median([one.median_ms for one in own if one.timed] or [0.0]),
        )
        for name, own in found.items()
    }


def _mean_wait(waits: Sequence[SyncWait]) -> SyncWait | None:
    if not waits:
        return None
    return SyncWait(**{name: mean(getattr(wait, name) for wait in waits) for name in _WAITS})


def path_table_of(figures: Sequence[PathFigure]) -> Table:
    """The table: bytes to disks for each byte that the client wrote, and the waits of a write."""
    title = "bytes written to disks for each byte of the client, and a synchronous write's time, ms"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    waits = ("in ZIL", "in flush", "in both", "rest")
    for column in ("", "job", *_WORDS.values(), "all", "late data", "flushes/operation", *waits):
        table.add_column(column, overflow="fold")
    for figure in figures:
        path = figure.path
        flushes = path.flushes_per_operation
        table.add_row(
            figure.row,
            figure.job,
            *(_share(path, place) for place in _WORDS),
            "-" if path.amplification is None else f"{path.amplification:.2f}",
            "-" if path.late_share is None else f"{path.late_share:.0%}",
            "-" if flushes is None else f"{flushes:.2f}",
            *_wait_in_words(path.wait if figure.is_of_model else None),
        )
    return table


def _share(path: WritePath, place: PathPlace) -> str:
    traffic = path.places.get(place)
    if traffic is None or not path.client_bytes:
        return "-"
    return f"{traffic.bytes / path.client_bytes:.3g}"


def _wait_in_words(wait: SyncWait | None) -> list[str]:
    if wait is None:
        return ["-"] * len(_WAITS)
    return [f"{getattr(wait, name):.3g}" for name in _WAITS]


def pictured(figures: Sequence[PathFigure]) -> tuple[PathFigure, PathFigure | None] | None:
    """The synchronous and the asynchronous row of a table's picture: a log device, and no log.

    Both only where their times are the model's. None where no such row waits for a log.
    """
    figures = [figure for figure in figures if figure.is_of_model]
    logs = (PathPlace.ZIL_SLOG, PathPlace.ZIL_POOL)
    with_log = [figure for place in logs for figure in figures if place in figure.path.places]
    without = [figure for figure in figures if not {*logs} & figure.path.places.keys()]
    return (with_log[0], without[0] if without else None) if with_log else None
