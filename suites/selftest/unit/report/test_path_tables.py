"""The second table of a speed question: the counted jobs of its rows."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console

from suites.selftest.unit.made_records import trial_record
from suites.speed.path_tables import PathFigure, path_table_of, paths_of, pictured
from suites.speed.questions import R2, Row, cell_of
from torture.facts.speed.measured_document import MeasuredDocument, MeasuredJob
from torture.facts.speed.write_path import SyncWait, Traffic, WritePath
from torture.facts.speed.written_places import PathPlace
from torture.records.record.trials import TrialRecord

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
    jobs = tuple(
        MeasuredJob(job=name, link=link, mean_ms=4, emulator_share=share, write_path=one)
        for one in paths
    )
    cell = cell_of(row)
    measured = MeasuredDocument(jobs=jobs)
    return trial_record(trial=cell.name, cell=cell.name, axes=cell.axes, measured=measured)


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
