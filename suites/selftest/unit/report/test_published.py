"""The runs in git: a description and records, without any path of their host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT
from torture.choices.matrix.axes import DEFAULTS
from torture.choices.matrix.cells import Cell
from torture.records.record.lines import glance, lines_of, read_line
from torture.records.record.run_layout import RUN_FILE, TRIALS_FILE
from torture.records.record.trials import Origin
from torture.records.record.trials_file import read_records
from torture.report.exports.as_markdown import export_markdown
from torture.report.reading.columns import Row, values_of
from torture.report.reading.runs import find_run, find_runs
from torture.report.reading.store import Store
from torture.report.reading.tally import kind_of

PUBLISHED = CHECKOUT / "results" / "published"
RUNS = sorted(path for path in PUBLISHED.iterdir() if path.is_dir())
OF_A_MACHINE = re.compile(r"(?<![\w.])/(tmp|root|home|work|var)/")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_published_run_is_a_description_and_records(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {RUN_FILE, TRIALS_FILE}
    (info,) = find_runs(run)
    assert info.is_documented
    found = read_records(run / TRIALS_FILE)
    assert found.records
    assert not found.unreadable_lines
    # live cuts, walked recordings or speeds; never a planted fault or a repetition
    (origin,) = {record.origin for record in found.records}
    assert origin in (Origin.LIVE, Origin.WALKED, Origin.MEASURED)
    for record in found.records:
        axes = Cell.parse(record.cell).axes
        assert record.axes.items() <= axes.items()
        # a run from before an axis has its default
        assert all(axes[later] == DEFAULTS[later] for later in axes.keys() - record.axes.keys())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_published_run_holds_no_paths_of_its_host(run: Path) -> None:
    for file in (RUN_FILE, TRIALS_FILE):
        assert not OF_A_MACHINE.search((run / file).read_text())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_published_record_and_its_twin_fill_the_same_row(run: Path) -> None:
    info = find_run(run)
    for line in lines_of(run / TRIALS_FILE):
        rows = [
            Row(info, line, own, 0, own.guarantee, kind_of(own, own.guarantee))
            for own in (glance(line.raw).record, read_line(line.raw).record)
        ]
        assert [*values_of(rows[:1])] == [*values_of(rows[1:])]


def test_the_published_rates_are_an_export_of_these_runs(tmp_path: Path) -> None:
    with Store.open([PUBLISHED]) as store:
        (made,) = export_markdown(store, tmp_path)
    assert (CHECKOUT / "docs" / "rates.md").read_text() == made.read_text()
