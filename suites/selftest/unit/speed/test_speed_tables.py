"""The tables of suites/speed, and the picture of the write path."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from msgspec import structs
from rich.console import Console

from suites.selftest.unit.made_records import trial_record
from suites.selftest.unit.speed.measured_records import measured_job, measured_record
from suites.speed import test_speed
from suites.speed.narrowing import NarrowingSchedule, is_narrow
from suites.speed.questions import QUESTIONS, R2, R4, Question, Row, cell_of
from suites.speed.tables import PathFigure, figures_of, path_table_of, paths_of, pictured, table_of
from torture.choices.matrix.cells import Cell
from torture.facts.axes.pool_disks import SlogClass
from torture.features.speed.documents import MeasuredDocument, MeasuredJob
from torture.features.speed.draws import draw_measured
from torture.features.speed.jobs.jobs import Link, SpeedJob
from torture.features.speed.jobs.published import R4 as PUBLISHED_R4
from torture.features.speed.jobs.published import TABLES, FigureKind, Ours, PublishedTable
from torture.features.speed.jobs.write_path import PathPlace, SyncWait, Traffic, WritePath
from torture.features.speed.tasks import MEASURED, MeasureOrder
from torture.features.speed.trade.write_path_picture import PathOfJob, alone, write_path_picture
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.protocol import Schedule
from torture.trials.campaign.run import settle


def _record(row: Row, number: int, *, ms: float, share: float = 0.05) -> TrialRecord:
    """A pass over a row, with two rounds of each of its jobs and links."""
    jobs = [
        MeasuredJob(
            job=job, link=link, round=round_, operations=9, operations_per_s=1000 / ms,
            mib_per_s=1 / ms, mean_ms=ms, emulator_share=share,
        )
        for round_ in range(2)
        for link in row.order.links
        for job in row.order.jobs
    ]  # fmt: skip
    return _record_of(row, *jobs, number=number)


def _record_of(row: Row, *jobs: MeasuredJob, number: int = 0) -> TrialRecord:
    cell, order = cell_of(row), row.order
    trial = f"measured.{row.words}.{number}"
    document = MeasuredDocument(place=order.place, device=order.device, slow_motion=20, jobs=jobs)
    return trial_record(
        trial=trial, cell=cell.name, axes=cell.axes, origin=MEASURED, measured=document
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


# The write path: the second table of a speed question, and the picture on the page.

BY_WORDS = {row.words: row for row in R2.rows}
SLOG, DISABLED = BY_WORDS["a SAS SSD as SLOG"], BY_WORDS["sync=disabled"]


def path(place: PathPlace, *, writes: int, flushes: float | None) -> WritePath:
    return WritePath(
        places={place: Traffic(requests=writes, bytes=writes * 2048, timed=writes, median_ms=2)},
        client_operations=10,
        client_bytes=10 * 1024,
        amplification=writes * 2048 / 10240,
        late_share=writes / 40,
        flushes_per_operation=flushes,
        wait=SyncWait(zil_ms=writes, rest_ms=1),
    )


def record_of(row: Row, *paths: WritePath | None, share: float = 0.05) -> TrialRecord:
    [link], [name] = row.order.links, row.order.jobs
    jobs = [
        MeasuredJob(job=name, link=link, mean_ms=4, emulator_share=share, write_path=one)
        for one in paths
    ]
    return _record_of(row, *jobs)


def test_counted_jobs_of_a_row_are_together() -> None:
    slog = PathPlace.ZIL_SLOG
    records = [
        record_of(SLOG, None, path(slog, writes=10, flushes=0.5)),
        record_of(SLOG, None, path(slog, writes=30, flushes=1.5)),
    ]
    [figure] = paths_of(R2, records)
    assert figure.path.places[slog].requests == 40
    assert figure.path.amplification == 40 * 2048 / 20480
    assert figure.path.flushes_per_operation == 1
    assert figure.path.late_share == 0.5
    assert figure.path.wait == SyncWait(zil_ms=20, rest_ms=1)
    assert len(figure.as_json()["jobs"]) == 2


def test_rows_without_a_count_have_no_line_and_no_picture() -> None:
    figures = paths_of(R2, [record_of(SLOG, None)])
    assert figures == []
    assert pictured(figures) is None


def test_the_picture_has_a_row_with_a_log_and_one_without() -> None:
    records = [
        record_of(DISABLED, path(PathPlace.DATA, writes=10, flushes=None)),
        record_of(SLOG, path(PathPlace.ZIL_SLOG, writes=10, flushes=1.0)),
    ]
    chosen = pictured(paths_of(R2, records))
    assert chosen is not None
    assert chosen[1] is not None
    assert (chosen[0].row, chosen[1].row) == (SLOG.words, DISABLED.words)


def test_times_of_the_emulator_are_neither_drawn_nor_printed() -> None:
    slog = path(PathPlace.ZIL_SLOG, writes=10, flushes=0.25)
    records = [
        record_of(DISABLED, path(PathPlace.DATA, writes=10, flushes=None), share=0.7),
        record_of(SLOG, slog),
    ]
    chosen = pictured(paths_of(R2, records))
    assert chosen is not None
    assert chosen[1] is None
    figures = paths_of(R2, [record_of(SLOG, slog, share=0.2)])
    assert pictured(figures) is None
    assert line_of(figures).split()[-7:] == ["2.00", "25%", "0.25", "-", "-", "-", "-"]


def test_the_table_has_bytes_for_each_of_the_clients() -> None:
    figures = paths_of(R2, [record_of(SLOG, path(PathPlace.ZIL_SLOG, writes=10, flushes=0.25))])
    assert line_of(figures).split()[-9:] == ["-", "-", "2.00", "25%", "0.25", "10", "0", "0", "1"]


def line_of(figures: Sequence[PathFigure]) -> str:
    """The table's line of the row with a log device."""
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(path_table_of(figures))
    return next(one for one in capture.get().splitlines() if SLOG.words in one)


# The picture of the write path: its numbers in words, its colours, and hostile names.

SVG = "{http://www.w3.org/2000/svg}"


def traffic(requests: int, each_bytes: int, median_ms: float) -> Traffic:
    return Traffic(
        requests=requests, bytes=requests * each_bytes, timed=requests, median_ms=median_ms
    )


PATH = WritePath(
    places={
        PathPlace.ZIL_SLOG: traffic(100, 69632, 0.16),
        PathPlace.DATA: traffic(50, 131072, 5.1),
        PathPlace.UBERBLOCK: traffic(1, 1024, 0.025),
    },
    flushes={"slog0": traffic(97, 0, 0.0)},
    client_operations=100,
    client_bytes=100 * 65536,
    amplification=2.06,
    flushes_per_operation=0.97,
    wait=SyncWait(zil_ms=0.9, flush_ms=0.05, rest_ms=1.35),
)
SYNC = PathOfJob(words="a SAS SSD as SLOG", path=PATH, mean_ms=2.3)
ASYNC = PathOfJob(words="sync=disabled", path=WritePath(), mean_ms=1.15)


def texts(svg: str) -> list[str]:
    tree = ElementTree.fromstring(svg)
    return [one.text for one in tree.iter() if one.tag in (f"{SVG}text", f"{SVG}tspan") if one.text]


def test_the_picture_has_the_numbers_of_both_jobs() -> None:
    shown = texts(write_path_picture(SYNC, ASYNC))
    for expected in (
        "synchronous write: a SAS SSD as SLOG",
        "client, link, the NAS's memory, its intent log: acknowledged after 2.3 ms",
        "68 KiB a write into the intent log, 0.16 ms; 0.97 flushes a write, 0 us",
        "client, link, the NAS's memory: acknowledged after 1.1 ms",
        "ZIL 0.90 ms",
        "flush 50 us",
        "data: 50 writes, 5.1 ms each",
        "uberblocks: 1 write, 25 us each",
        "the synchronous job's disks: 2.06 bytes for each of the client's",
    ):
        assert expected in shown, shown


def test_bars_have_the_proportions_of_the_times() -> None:
    drawn = write_path_picture(SYNC, ASYNC)
    widths = [float(width) for width in re.findall(r'd="M[\d.,]+h([\d.]+)v16', drawn)]
    assert abs(widths[0] / sum(widths[:3]) - 0.9 / 2.3) < 0.01
    assert abs(widths[3] / sum(widths[:3]) - 0.5) < 0.01, "half the time is half the bar"


def test_a_reader_who_does_not_see_it_gets_it_in_words() -> None:
    tree = ElementTree.fromstring(write_path_picture(SYNC, ASYNC))
    said = tree.get("aria-label") or ""
    assert tree.get("role") == "img"
    assert "An asynchronous write (sync=disabled) is acknowledged after 1.1 ms" in said
    assert "ZIL on the SLOG: 100 writes, 0.16 ms each" in said


def test_one_job_is_enough_and_nothing_counted_is_no_error() -> None:
    shown = texts(write_path_picture(PathOfJob(words="x", path=WritePath(), mean_ms=0.0)))
    assert "synchronous write: x" in shown
    assert not any("asynchronous" in words for words in shown)


def test_names_are_escaped() -> None:
    hostile = PathOfJob(words="<script>&\"'", path=PATH, mean_ms=1.0)
    assert "synchronous write: <script>&\"'" in texts(write_path_picture(hostile, hostile))


def test_a_file_of_its_own_defines_every_colour_that_it_uses() -> None:
    svg = alone(write_path_picture(SYNC, ASYNC))
    ElementTree.fromstring(svg)
    assert {*re.findall(r"var\(--([\w-]+)\)", svg)} <= {*re.findall(r"--([\w-]+): #", svg)}
