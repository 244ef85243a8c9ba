"""The write path: the second table of a speed question, and the picture on the page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from xml.etree import ElementTree

from rich.console import Console

from suites.selftest.unit.made_records import trial_record
from suites.speed.path_tables import PathFigure, path_table_of, paths_of, pictured
from suites.speed.questions import R2, Row, cell_of
from torture.features.speed.documents import MeasuredDocument, MeasuredJob
from torture.features.speed.jobs.write_path import PathPlace, SyncWait, Traffic, WritePath
from torture.features.speed.trade.write_path_picture import PathOfJob, alone, write_path_picture
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
