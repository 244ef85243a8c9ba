"""The totals of the published runs: the report's are those of a script that shares no code with it."""

from __future__ import annotations

import re
from pathlib import Path

from suites.selftest.unit.report.count_published import counts_of
from torture.checkout import CHECKOUT
from torture.report.exports import EXPORTS
from torture.report.figures.cell_figures import cell_figures
from torture.report.page.render import render_page
from torture.report.reading.store import Store

PUBLISHED = CHECKOUT / "results" / "published"
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
    walked = [figures.walked for figures in cells if figures.walked is not None]
    assert expected == {
        "cuts": sum(figures.trials for figures in cells),
        "conclusive cuts": sum(figures.conclusive + figures.confirmations for figures in cells),
        "harmed cuts": sum(figures.harm.events for figures in cells),
        "recordings": sum(walks.recordings for walks in walked),
        "states": sum(walks.states for walks in walked),
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
    assert figures.walked is not None
    assert (figures.walked.recordings, figures.walked.lost) == (2, 0)
