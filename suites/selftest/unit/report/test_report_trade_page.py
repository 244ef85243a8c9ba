"""The section "Speed beside safety" on the page: there with measurements, and with hostile ones, too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from suites.selftest.unit.measured_records import measured_job, measured_record, measured_rounds
from suites.selftest.unit.report.test_report_trade import ALWAYS, DISABLED, cuts
from suites.selftest.unit.report_records import write_run
from torture.records.record.trials import TrialRecord
from torture.report.page.render import render_page
from torture.report.reading.store import Store

SLOG_RAW = "iscsi-always-plp-sas-raw-bothdie"


def page_of(tmp_path: Path, records: Sequence[TrialRecord]) -> str:
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        return render_page(store)


def test_a_page_without_measurements_has_no_section(tmp_path: Path) -> None:
    page = page_of(tmp_path, cuts(ALWAYS, intact=3))
    assert "Speed beside safety" not in page


def test_a_page_of_measurements_alone_says_that_there_are_no_cuts(tmp_path: Path) -> None:
    page = page_of(tmp_path, measured_rounds(ALWAYS, [6.0] * 4))
    assert "0 power cuts" in page
    assert "No power cut was measured." in page
    assert "no cuts of this configuration" in page
    assert "not walked" in page


def test_the_front_and_the_prices_are_on_the_page(tmp_path: Path) -> None:
    records = [
        *measured_rounds(ALWAYS, [12.0] * 4), *cuts(ALWAYS, intact=40),
        *measured_rounds(DISABLED, [1.0] * 4), *cuts(DISABLED, intact=2, lost=38),
    ]  # fmt: skip
    page = page_of(tmp_path, records)
    assert page.count('aria-label="measured speed against loss"') == 2
    first_screen = page.split('<table id="grid">')[0]
    assert "synchronous writes of 4 KiB take 12.0 times" in first_screen
    text = re.sub(r"\s+", " ", page)
    assert "R6: sizes of blocks" in text


def test_a_sweep_is_drawn_where_something_of_it_was_measured(tmp_path: Path) -> None:
    records = measured_rounds(SLOG_RAW, [1.0] * 4, job="syncwrite-4k-t4", link="gbe10")
    page = page_of(tmp_path, records)
    assert page.count('aria-label="synchronous writes of 4 KiB by threads"') == 2
    assert 'aria-label="writes of 128 KiB in a row"' not in page
    bars = measured_rounds(SLOG_RAW, [1.0] * 4, job="write-128k-t1", link="gbe10")
    assert 'aria-label="writes of 128 KiB in a row"' in page_of(tmp_path / "bars", bars)


def test_hostile_words_of_a_measurement_are_text(tmp_path: Path) -> None:
    job = measured_job(2.0, link="<script>x</script>")
    record = replace(
        measured_record(ALWAYS, [job]),
        cell="<img src=x>",
        axes={"sync": "<b>", "transport": "<i>"},
    )
    page = page_of(tmp_path, [record])
    assert "<img" not in page
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page
