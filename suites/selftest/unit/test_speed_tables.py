"""The tables of suites/speed: which figures are whose, and which are none."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from suites.speed import test_speed
from suites.speed.questions import QUESTIONS, R2, R4, Question, Row, cell_of
from suites.speed.tables import figures_of, table_of
from torture.facts.speed.jobs import SpeedJob
from torture.facts.speed.measured_document import MeasuredDocument, MeasuredJob
from torture.oracles.verdict.judgement import Judgement
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Origin, TrialRecord


def _record(row: Row, number: int, *, ms: float, share: float = 0.05) -> TrialRecord:
    """A pass over a row, with two rounds of each of its jobs and links."""
    jobs = tuple(
        MeasuredJob(
            job=job, link=link, round=round_, operations=9, operations_per_s=1000 / ms,
            mib_per_s=1 / ms, mean_ms=ms, emulator_share=share,
        )
        for round_ in range(2)
        for link in row.order.links
        for job in row.order.jobs
    )  # fmt: skip
    document = MeasuredDocument(
        place=row.order.place, device=row.order.device, slow_motion=20, jobs=jobs
    )
    return TrialRecord(
        trial=f"measured.{row.words}.{number}",
        cell=cell_of(row).name,
        judgement=Judgement(verdict=Verdict.INTACT),
        origin=Origin.MEASURED,
        measured=document,
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_every_row_can_be_measured(question: Question) -> None:
    for row in question.rows:
        assert all(SpeedJob.parse(name).name == name for name in row.order.jobs)
    keys = [(cell_of(row), row.order) for row in question.rows]
    assert len(set(keys)) == len(keys), "two rows would share their records"


def test_each_row_has_the_figures_of_its_own_records() -> None:
    records = [
        _record(row, number, ms=10.0 * (place + 1))
        for place, row in enumerate(R4.rows)
        for number in range(2)
    ]
    figures = figures_of(R4, [*reversed(records), _record(R2.rows[0], 0, ms=1)])
    assert [figure.row for figure in figures] == [row.words for row in R4.rows]
    assert [round(figure.mean_ms.value) for figure in figures] == [10, 20, 30, 40, 50, 60]
    assert all(figure.rounds == 4 for figure in figures)
    assert figures_of(R2, records) == []


def test_a_figure_has_the_slow_motion_of_its_own_job() -> None:
    record = _record(R4.rows[0], 0, ms=10)
    assert record.measured is not None
    slower = replace(record.measured.jobs[0], slow_motion=50)
    measured = replace(record.measured, jobs=(slower, *record.measured.jobs[1:]))
    (figure,) = figures_of(R4, [replace(record, measured=measured)])
    assert figure.slow_motion == (50, 20)


def test_a_figure_of_the_emulator_is_left_out() -> None:
    record = _record(R2.rows[0], 0, ms=2.0, share=0.2)
    (figure,) = figures_of(R2, [record])
    assert not figure.is_of_model
    cells = [next(iter(column.cells)) for column in table_of(R2, [figure]).columns]
    assert cells[3:7] == ["-", "-", "-", "20%: no figure"]
    shown = replace(figure, emulator_share=0.05)
    assert list(table_of(R2, [shown]).columns[5].cells) == ["2"]


@pytest.mark.parametrize(
    ("nothing_ms", "unflushed_ms", "complaint"),
    [(100, 20, ""), (100, 1, "zfs_nocacheflush"), (15, 10, "no tenth")],
)
def test_rows_in_another_order_than_the_published_one_are_refused(
    nothing_ms: float, unflushed_ms: float, complaint: str
) -> None:
    """All other rows take 2 ms."""
    times_ms = {"nothing": nothing_ms, "zfs_nocacheflush=1": unflushed_ms}
    records = [_record(row, n, ms=times_ms.get(row.words, 2)) for row in R2.rows for n in (0, 1)]
    expected = pytest.raises(AssertionError, match=complaint) if complaint else nullcontext()
    with expected:
        test_speed.must_keep_the_order(R2, figures_of(R2, records))
