"""The picture of the write path: its numbers in words, its colours, and hostile names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from torture.facts.speed.write_path import SyncWait, Traffic, WritePath
from torture.facts.speed.written_places import PathPlace
from torture.report.page.write_path_picture import PathOfJob, alone, write_path_picture

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
