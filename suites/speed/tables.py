"""The figures of a published table, as measured here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.table import Table

from suites.speed.questions import Question, Row, cell_of
from torture.features.speed.documents import MeasuredDocument, MeasuredJob, MeasuredPlace
from torture.features.speed.jobs.slow_motion import SHARE_MAX, Estimate, mean_of
from torture.records.record.trials import TrialRecord


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
    documents = documents_of(row, records)
    return list(_of_documents(row, documents)) if documents else []


def documents_of(row: Row, records: Sequence[TrialRecord]) -> list[MeasuredDocument]:
    """The measurements of a row."""
    return [one for record in records if (one := _of_row(row, record)) is not None]


def _of_row(row: Row, record: TrialRecord) -> MeasuredDocument | None:
    """The measurement of this row that the record has; None where it is another's."""
    document = record.part(MeasuredDocument)
    if document is None or record.cell != cell_of(row).name or document.place != row.order.place:
        return None
    if row.order.place == MeasuredPlace.LOG_DEVICE and document.device != row.order.device:
        return None
    return document


def _of_documents(row: Row, documents: Sequence[MeasuredDocument]) -> Iterator[Figure]:
    for link in row.order.links:
        for name in row.order.jobs:
            ended = [
                (document.slow_motion_of(job), job)
                for document in documents
                for job in document.jobs
                if (job.link, job.job) == (link, name)
            ]
            if ended:
                yield _figure(
                    row, [job for _, job in ended], tuple(dict.fromkeys(n for n, _ in ended))
                )


def _figure(row: Row, ended: Sequence[MeasuredJob], slow_motion: tuple[int, ...]) -> Figure:
    return Figure(
        row=row.words,
        job=ended[0].job,
        link=ended[0].link,
        slow_motion=slow_motion,
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
