"""Where the cuts fell, counted over live trials and drawn on the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from suites.selftest.unit.report_records import make_records, write_run
from torture.audit.phases import Phase
from torture.axes.sweeps import Matrix
from torture.evidence.cut_document import CutDocument
from torture.matrix.cells import cells_of
from torture.record.trials import Origin, TrialRecord
from torture.report.page.render import render_page
from torture.report.reading.store import Store

PHASES = (Phase.ZIL_WRITTEN, Phase.ZIL_WRITTEN, Phase.METADATA_WRITTEN, Phase.IDLE)
HEADING = "Where the cuts fell"


def records(n: int) -> list[TrialRecord]:
    made = make_records(n, cells=cells_of(Matrix.QUICK), seed=3)
    return [
        replace(record, cut=replace(record.cut, phase=phase))
        for record, phase in zip(made, cycle(PHASES), strict=False)
    ]


def test_live_cuts_are_counted_by_their_phase(tmp_path: Path) -> None:
    made = records(23)
    again = replace(made[0], origin=Origin.REPLAY, repeats=made[0].trial, origin_run="r")
    with Store.open([write_run(tmp_path / "run", [*made, again])]) as store:
        found = store.phases()
        page = render_page(store)
    assert dict(found) == Counter(record.cut.phase for record in made)
    assert [count for _, count in found] == sorted((count for _, count in found), reverse=True)
    assert HEADING in page
    assert "metadata written" in page


def test_where_no_record_says_it_nothing_is_drawn(tmp_path: Path) -> None:
    old = [replace(record, cut=CutDocument()) for record in records(5)]
    with Store.open([write_run(tmp_path / "run", old)]) as store:
        assert store.phases() == ()
        assert HEADING not in render_page(store)
