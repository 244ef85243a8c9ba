"""The figures of a published table, as measured here, and the write paths of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any

from rich import box
from rich.table import Table

from suites.speed.questions import Question, Row, cell_of
from torture.features.speed.documents import MeasuredDocument, MeasuredJob, MeasuredPlace
from torture.features.speed.jobs.slow_motion import SHARE_MAX, Estimate, mean_of
from torture.features.speed.jobs.write_path import PathPlace, SyncWait, Traffic, WritePath
from torture.features.speed.trade.write_path_picture import PathOfJob
from torture.records.record.trials import TrialRecord

_Ended = tuple[MeasuredDocument, MeasuredJob]
"""A round of a job, and the measurement that it is of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A job of a row over a link, over all rounds."""

    row: str
    job: str
    link: str
    slow_motion: tuple[int, ...]
    rounds: int
    emulator_share: float
    """The largest of all rounds."""
    mib_per_s: Estimate
    operations_per_s: Estimate
    mean_ms: Estimate

    @property
    def is_of_model(self) -> bool:
        """Whether the figure is the model's; otherwise its time is the emulator's."""
        return self.emulator_share <= SHARE_MAX

    def as_json(self) -> dict[str, Any]:
        """As the table's file has it."""
        return asdict(self) | {"is_of_model": self.is_of_model}


def figures_of(question: Question, records: Sequence[TrialRecord]) -> list[Figure]:
    """The figures of all rows that were measured, in their order."""
    return [figure for row in question.rows for figure in figures_of_row(row, records)]


def figures_of_row(row: Row, records: Sequence[TrialRecord]) -> list[Figure]:
    """The figures of a row; none where it was not measured."""
    return [_figure(row, ended) for ended in _ended(row, records) if ended]


def _ended(row: Row, records: Sequence[TrialRecord]) -> Iterator[list[_Ended]]:
    """The rounds of a row, by link and job; a row that was not measured has no rounds."""
    documents = [one for record in records if (one := _of_row(row, record)) is not None]
    every = [(document, job) for document in documents for job in document.jobs]
    for link in row.order.links:
        for name in row.order.jobs:
            yield [one for one in every if (one[1].link, one[1].job) == (link, name)]


def _of_row(row: Row, record: TrialRecord) -> MeasuredDocument | None:
    """The measurement of this row that the record has; None where it is another's."""
    document = record.part(MeasuredDocument)
    if document is None or record.cell != cell_of(row).name or document.place != row.order.place:
        return None
    if row.order.place == MeasuredPlace.LOG_DEVICE and document.device != row.order.device:
        return None
    return document


def _figure(row: Row, rounds: Sequence[_Ended]) -> Figure:
    ended = [job for _, job in rounds]
    return Figure(
        row=row.words,
        job=ended[0].job,
        link=ended[0].link,
        slow_motion=tuple(dict.fromkeys(one.slow_motion_of(job) for one, job in rounds)),
        rounds=len(ended),
        emulator_share=max(job.emulator_share for job in ended),
        mib_per_s=mean_of([job.mib_per_s for job in ended]),
        operations_per_s=mean_of([job.operations_per_s for job in ended]),
        mean_ms=mean_of([job.mean_ms for job in ended]),
    )


def table_of(question: Question, figures: Sequence[Figure]) -> Table:
    """The table, in the shape of the published one."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=question.words, title_justify="left")
    for column in ("", "job", "link", "MiB/s", "operations/s", "ms", "emulator", "slow motion"):
        table.add_column(column, overflow="fold")
    for figure in figures:
        estimates = (figure.mib_per_s, figure.operations_per_s, figure.mean_ms)
        numbers = [_in_words(one) if figure.is_of_model else "-" for one in estimates]
        table.add_row(
            figure.row,
            figure.job,
            figure.link or "none",
            *numbers,
            f"{figure.emulator_share:.0%}" + ("" if figure.is_of_model else ": no figure"),
            ", ".join(map(str, figure.slow_motion)),
        )
    return table


def _in_words(estimate: Estimate) -> str:
    value = f"{estimate.value:.3g}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({estimate.low:.3g} to {estimate.high:.3g})"


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
        PathFigure(row=row.words, job=counted[0].job, link=counted[0].link, counted=counted)
        for row in question.rows
        for ended in _ended(row, records)
        if (counted := tuple(job for _, job in ended if job.write_path is not None))
    ]


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
