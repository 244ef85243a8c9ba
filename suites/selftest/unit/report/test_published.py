"""The runs in git: without any path of their host, and totals that share no code with the report's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from suites.selftest.unit.report.count_published import counts_of
from torture.choices.matrix.cells import DEFAULTS, Cell
from torture.files import CHECKOUT
from torture.records.record.run_document import RUN_FILE, TRIALS_FILE
from torture.records.record.trials import Origin
from torture.records.record.trials_file import read_records
from torture.report.exports import EXPORTS
from torture.report.exports.as_markdown import export_markdown
from torture.report.figures.cell_figures import cell_figures
from torture.report.page.render import render_page
from torture.report.reading.runs import find_runs
from torture.report.reading.store import Store

# without these features the published records of their origins are no records
WALKED, MEASURED = "walked", "measured"
Walked = pytest.importorskip("torture.features.walk.surveys").Walked
pytest.importorskip("torture.features.speed")

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
    assert origin in (Origin.LIVE, WALKED, MEASURED)
    for record in found.records:
        axes = Cell.parse(record.cell).axes
        assert record.axes.items() <= axes.items()
        # a run from before an axis has its default
        assert all(axes[later] == DEFAULTS[later] for later in axes.keys() - record.axes.keys())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_published_run_holds_no_paths_of_its_host(run: Path) -> None:
    for file in (RUN_FILE, TRIALS_FILE):
        assert not OF_A_MACHINE.search((run / file).read_text())


def test_the_published_rates_are_an_export_of_these_runs(tmp_path: Path) -> None:
    with Store.open([PUBLISHED]) as store:
        (made,) = export_markdown(store, tmp_path)
    assert (CHECKOUT / "docs" / "rates.md").read_text() == made.read_text()


# The totals of the published runs: the report's are those of a script that shares no code with
# it.

WITHOUT_IMPORTS = re.compile(r"^\s*(?:from|import) (?:torture|suites|fixtures)\b", re.MULTILINE)


def test_the_totals_of_the_report_are_those_of_an_independent_count(tmp_path: Path) -> None:
    expected = counts_of(PUBLISHED)
    with Store.open([PUBLISHED]) as store:
        cells = cell_figures(store.tallies())
        page = render_page(store)
        (markdown,) = EXPORTS["markdown"].write(store, tmp_path)
        voids = sum("is void, and in no rate" in note for note in store.notes)
        ((amid,),) = store.sql.execute(
            "SELECT sum(walked_amid_recovery) FROM walks WHERE badness >= 0"
        ).fetchall()
    walked = [
        survey for figures in cells for survey in figures.surveys if isinstance(survey, Walked)
    ]
    assert expected == {
        "cuts": sum(figures.trials for figures in cells),
        "conclusive cuts": sum(figures.conclusive + figures.confirmations for figures in cells),
        "harmed cuts": sum(figures.harm.events for figures in cells),
        "recordings": sum(walks.recordings for walks in walked),
        "states": sum(walks.units for walks in walked),
        "proven states": sum(walks.proven for walks in walked),
        "states amid recovery": amid,
        "losing states": sum(walks.lost for walks in walked),
        "losing recordings": sum(walks.recordings_lost for walks in walked),
        "void": voids,
    }
    cuts = f"{expected['cuts']:,}"
    assert f"{cuts} power cuts of {len(cells)} configurations" in page
    assert f"{cuts} trials of" in markdown.read_text()
    states = f"{expected['losing states']} of {expected['states']:,} walked crash states lost"
    assert states in markdown.read_text()


def test_the_independent_count_has_nothing_of_the_suite() -> None:
    source = Path(__file__).with_name("count_published.py").read_text()
    assert not WITHOUT_IMPORTS.search(source)


def test_a_void_walk_accuses_no_published_cell() -> None:
    with Store.open([PUBLISHED]) as store:
        cells = {one.cell: one for one in cell_figures(store.tallies())}
    figures = cells["iscsi-always-volatile-sector512-btrfs-bothdie"]
    assert not figures.is_worse
    figures = cells["iscsi-always-volatile-btrfs-bothdie"]
    assert not figures.is_worse
    (walked,) = figures.surveys
    assert (walked.recordings, walked.lost) == (2, 0)
