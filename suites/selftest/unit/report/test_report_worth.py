"""A cell's worth, on the page and in the tables: medians, or none."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import Absence, Origin, Speed, TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.wording import latency_in_words, speed_in_words
from torture.report.page.render import render_page
from torture.report.reading.store import Store
from torture.report.reading.tally import Worth
from torture.report.terminal import outage_lines

CELL = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
OTHER = Cell.parse("iscsi-standard-noslog-btrfs-nasonly")
EXPECTED = Worth(
    durable_per_s=25.0, sync_p50_ms=2.5, sync_p99_ms=250.0, outage_ms=7500.0, reconnect_ms=150.0
)


def intact(cell: Cell, count: int) -> list[TrialRecord]:
    records = make_records(count, cells=[cell], seed=2)
    return [
        changed(record, verdict=Verdict.INTACT, lost=0, rollback_ms=None, error=None)
        for record in records
    ]


def measured() -> list[TrialRecord]:
    """Four that tell, one that is silent, and two that must not count: inconclusive, and repeated."""
    records = intact(CELL, 7)
    measured = [
        replace(
            record,
            speed=Speed(durable_per_s=10.0 * n, sync_p50_ms=1.0 * n, sync_p99_ms=100.0 * n),
            absence=Absence(
                outage_ms=5000.0 + 1000 * n, reconnect_ms=60.0 * n, acknowledged_in_outage=0
            ),
        )
        for n, record in enumerate(records[:4], start=1)
    ]
    far = Speed(durable_per_s=1e6, sync_p50_ms=1e6, sync_p99_ms=1e6)
    return [
        *measured,
        records[4],
        changed(records[5], speed=far, verdict=Verdict.INCONCLUSIVE),
        replace(records[6], speed=far, origin=Origin.RERUN, repeats="x", origin_run="y"),
    ]


def test_a_cells_worth_is_the_median_of_conclusive_trials_with_a_measurement(
    tmp_path: Path,
) -> None:
    records = measured()
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        (figures,) = cell_figures(store.tallies())
        assert (figures.worth, figures.acknowledged_in_outage) == (EXPECTED, 0)
        files = EXPORTS["csv"].write(store, tmp_path)
        (document,) = EXPORTS["json"].write(store, tmp_path)
    rows = list(csv.DictReader((tmp_path / "cells.csv").read_text().splitlines()))
    for name in Worth.__dataclass_fields__:
        assert float(rows[0][name]) == getattr(EXPECTED, name)
        assert json.loads(document.read_text())["cells"][0][name] == getattr(EXPECTED, name)
    assert files
    listed = csv.DictReader((tmp_path / "trials.csv").read_text().splitlines())
    trials = {row["trial"]: row for row in listed}
    assert trials[records[1].trial]["sync_p50_ms"] == "2.0"
    assert trials[records[1].trial]["reconnect_ms"] == "120.0"
    assert trials[records[1].trial]["acknowledged_in_outage"] == "0"
    assert trials[records[4].trial]["outage_ms"] == ""


def test_records_without_measurements_have_no_worth(tmp_path: Path) -> None:
    records = intact(CELL, 3)
    run = write_run(tmp_path / "run", records)
    lines = [json.loads(line) for line in (run / TRIALS_FILE).read_text().splitlines()]
    for line in lines:
        line.pop("speed", None)
        line.pop("absence", None)
    (run / TRIALS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Store.open([run]) as store:
        (figures,) = cell_figures(store.tallies())
        page = render_page(store)
    assert store.notes == ()
    assert figures.worth == Worth()
    assert not figures.worth.is_known
    assert "durable per second" not in page


def test_the_page_says_how_fast_and_how_it_was_made(tmp_path: Path) -> None:
    records = [*measured(), *intact(OTHER, 2)]
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        page = render_page(store)
    for words in ("2.5 ms, 250 ms", "7.5 s, 150 ms", "only ratios mean anything"):
        assert words in page, words


def test_an_acknowledgement_without_a_nas_is_a_case_and_is_reported(tmp_path: Path) -> None:
    sound, found = intact(OTHER, 2)
    why = "2 operations were acknowledged while no NAS could answer"
    found = changed(
        found,
        absence=Absence(outage_ms=1.0, acknowledged_in_outage=2, unfounded=2, lines=(8, 9)),
        reasons=(why,),
    )
    with Store.open([write_run(tmp_path / "run", [sound, found])]) as store:
        (case,) = store.cases(most=9)
        page = render_page(store)
        (line,) = outage_lines(cell_figures(store.tallies()))
    assert (case.record.trial, case.broke_guarantee) == (found.trial, False)
    assert case.record.absence == found.absence
    assert "2 operations were acknowledged while there was no NAS" in page
    assert "while no NAS could answer" in page
    assert line == f"{OTHER.name}: acknowledged while there was no NAS: 2"


@pytest.mark.parametrize(
    ("ms", "words"),
    [(None, ""), (0.0, "0.00 ms"), (0.994, "0.99 ms"), (0.996, "1.0 ms"), (9.94, "9.9 ms"),
     (9.96, "10 ms"), (250.0, "250 ms"), (999.6, "1.0 s")],
)  # fmt: skip
def test_latencies_have_two_digits(ms: float | None, words: str) -> None:
    assert latency_in_words(ms) == words


@pytest.mark.parametrize(
    ("per_s", "words"), [(None, ""), (8.44, "8.4"), (9.96, "10"), (1234.5, "1,234")]
)
def test_speeds_have_two_digits_at_least(per_s: float | None, words: str) -> None:
    assert speed_in_words(per_s) == words
