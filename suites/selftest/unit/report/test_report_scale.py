"""A report of many records stays quick and small: its parts are counted, not its seconds."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.report_records import make_records, write_run
from torture.checkout import CHECKOUT
from torture.choices.matrix.cells import cells_of
from torture.choices.matrix.same_fault import why_different_there
from torture.facts.axes.sweeps import Matrix
from torture.records.record.lines import read_line
from torture.records.record.trials import TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.page.render import CASES_MAX, render_page
from torture.report.reading.store import Store

CELLS = cells_of(Matrix.QUICK)
RECORDS_MAX = 30
"""The most records that a report may hold at once, beside those of its cases."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    run = write_run(tmp_path / "run", make_records(400, cells=CELLS, seed=3))
    gc.collect()
    gc.freeze()  # objects of other tests are no records, and each look would pass them
    with Store.open([run]) as opened:
        yield opened


def held() -> int:
    return sum(type(thing) is TrialRecord for thing in gc.get_objects())


@pytest.mark.parametrize("place", ["page", *EXPORTS])
def test_records_are_not_held(
    place: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, counts = held(), [0]

    def counted(raw: bytes) -> Any:
        counts.append(held() - before)
        return read_line(raw)

    monkeypatch.setattr("torture.report.reading.store.read_line", counted)
    if place == "page":
        render_page(store)
    else:
        EXPORTS[place].write(store, tmp_path)
    assert max(counts) <= (CASES_MAX if place == "page" else RECORDS_MAX)
    reads = len(counts) - 1
    assert reads <= CASES_MAX if place == "page" else reads in {0, store.trials}


def test_a_page_compares_a_fault_with_a_cell_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def counted(here: Any, there: Any, **more: Any) -> str:
        asked.append((here.name, there.name))
        return why_different_there(here, there, **more)

    monkeypatch.setattr("torture.report.figures.sensitivity.why_different_there", counted)
    render_page(store)
    asked.clear()
    render_page(store)
    assert not asked
    assert measured_sensitivity() is measured_sensitivity()


def test_a_page_does_not_wait_for_scipys_statistics() -> None:
    code = (
        "import sys, torture.report.page.render; from torture.facts.stats.families import one_sided;"
        "from torture.facts.stats.rates import rate_of; one_sided(rate_of(1, 9), rate_of(5, 9));"
        "sys.exit('scipy.stats' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=True)
