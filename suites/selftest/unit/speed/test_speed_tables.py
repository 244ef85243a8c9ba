"""The tables of suites/speed: which figures are whose, enough passes over a row, whole when published."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest
from msgspec import structs

from suites.selftest.unit.speed.measured_records import measured_job, measured_record
from suites.speed import test_speed
from suites.speed.narrowing import NarrowingSchedule, is_narrow
from suites.speed.questions import QUESTIONS, R2, R4, Question, Row, cell_of
from suites.speed.tables import figures_of, table_of
from torture.choices.matrix.cells import Cell
from torture.facts.axes.pool_disks import SlogClass
from torture.features.speed.documents import MeasuredDocument, MeasuredJob
from torture.features.speed.draws import draw_measured
from torture.features.speed.jobs.jobs import Link, SpeedJob
from torture.features.speed.jobs.published import R4 as PUBLISHED_R4
from torture.features.speed.jobs.published import TABLES, FigureKind, Ours, PublishedTable
from torture.features.speed.tasks import MEASURED, MeasureOrder
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import UNJUDGED, Judgement
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.protocol import Schedule
from torture.trials.campaign.run import settle


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
    record = TrialRecord(
        trial=f"measured.{row.words}.{number}",
        cell=cell_of(row).name,
        judgement=Judgement(verdict=Verdict.INTACT, findings=UNJUDGED),
        origin=MEASURED,
    )
    return structs.replace(record, measured=document)


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
    document = record.part(MeasuredDocument)
    assert document is not None
    slower = structs.replace(document.jobs[0], slow_motion=50)
    measured = structs.replace(document, jobs=(slower, *document.jobs[1:]))
    (figure,) = figures_of(R4, [structs.replace(record, measured=measured)])
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


# Passes over a row: enough of them, and no needless ones, in whichever order they end.

_NARROW, _WIDE = R4.rows[0], R4.rows[1]
_PASSES = 4


def _timed_record(
    spec: TrialSpec, times_ms: Sequence[float], *, share: float = 0.02
) -> TrialRecord:
    """A pass whose rounds took these times."""
    assert isinstance(spec.task, MeasureOrder)
    jobs = [
        measured_job(ms, link="", number=number, share=share) for number, ms in enumerate(times_ms)
    ]
    record = measured_record(spec.cell.name, jobs, device=spec.task.device)
    return structs.replace(record, trial=spec.trial)


def _specs() -> tuple[TrialSpec, ...]:
    rows = [row for _ in range(_PASSES) for row in (_NARROW, _WIDE)]
    return draw_measured([(cell_of(row), row.order) for row in rows], run_seed=1)


def _ends(spec: TrialSpec) -> TrialRecord:
    assert isinstance(spec.task, MeasureOrder)
    is_narrow_row = spec.task.device == _NARROW.order.device
    return _timed_record(spec, (10, 10.1) if is_narrow_row else (10, 30))


def _schedule() -> NarrowingSchedule:
    return NarrowingSchedule(_specs(), [_NARROW, _WIDE], passes_least=2)


def _play(schedule: Schedule, *, at_most: int = 100) -> list[tuple[TrialSpec, TrialRecord]]:
    played: list[tuple[TrialSpec, TrialRecord]] = []
    while len(played) < at_most and (spec := schedule.next_spec()) is not None:
        record = _ends(spec)
        schedule.record_ended(spec, record)
        played.append((spec, record))
    return played


def _devices(played: Sequence[tuple[TrialSpec, TrialRecord]]) -> list[str]:
    return [spec.task.device for spec, _ in played if isinstance(spec.task, MeasureOrder)]


def test_a_narrow_row_ends_after_the_least_passes_and_a_wide_one_uses_them_all() -> None:
    schedule = _schedule()
    devices = _devices(_play(schedule))
    assert devices.count(_NARROW.order.device) == 2
    assert devices.count(_WIDE.order.device) == _PASSES
    assert (schedule.total, schedule.is_over) == (2 + _PASSES, True)


@pytest.mark.parametrize("ended", range(2 + _PASSES))
def test_an_interrupted_run_goes_on_to_the_same_passes(ended: int) -> None:
    before = _play(_schedule(), at_most=ended)
    schedule = _schedule()
    settle(schedule, [record for _, record in before])
    after = _play(schedule)
    whole = _play(_schedule())
    assert [spec for spec, _ in (*before, *after)] == [spec for spec, _ in whole]
    assert schedule.is_over


def test_a_figure_of_the_emulator_asks_for_no_more_passes() -> None:
    spec = _specs()[1]
    wide = (10, 30, 10, 30)
    assert not is_narrow(_WIDE, [_timed_record(spec, wide)])
    assert is_narrow(_WIDE, [_timed_record(spec, wide, share=0.5)])


def test_two_rounds_are_never_narrow() -> None:
    """They have no interval."""
    assert not is_narrow(_WIDE, [_timed_record(_specs()[1], (10, 10))])


# The published tables: whole, and in words that this version of the suite knows.


def ours_of(table: PublishedTable) -> list[Ours]:
    found = []
    for row in table.rows:
        for one in row.ours:
            while one is not None:
                found.append(one)
                one = one.over
    return found


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_a_table_has_a_text_for_each_column_and_names_known_measurements(
    table: PublishedTable,
) -> None:
    for row in table.rows:
        assert len(row.theirs) == len(table.columns)
        assert len(row.ours) in (0, len(table.columns))
        assert any(row.theirs) or row.ours
    for one in ours_of(table):
        assert Cell.parse(one.cell).name == one.cell
        assert SpeedJob.parse(one.job).name == one.job
        assert one.link in ("", *Link)
        assert one.device in ("", *SlogClass)
        assert one.over is None or one.over.kind is one.kind
    assert table.why


def test_each_class_of_log_device_is_in_the_table_of_these_once() -> None:
    assert [one.device for one in ours_of(PUBLISHED_R4)] == list(SlogClass)
    assert {one.kind for one in ours_of(PUBLISHED_R4)} == {FigureKind.MS}


def test_the_suite_measures_every_figure_of_its_tables() -> None:
    """A figure that no job gives would stay empty for ever."""
    for table in TABLES:
        measured = {
            (row.cell, row.order.device, job, link)
            for question in QUESTIONS
            if question.published == table.summary
            for row in question.rows
            for job in row.order.jobs
            for link in row.order.links
        }
        wanted = {(one.cell, one.device, one.job, one.link) for one in ours_of(table)}
        assert wanted <= measured, table.name
