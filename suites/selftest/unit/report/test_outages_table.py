"""The table of outages: which cells it has, and what it says of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suites.selftest.unit.made_records import record_in
from suites.selftest.unit.report_records import write_run
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import Absence, Remedy, TrialRecord
from torture.report.exports.as_markdown import export_markdown
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.outages import OutageCell, outage_cells
from torture.report.page.render import render_page
from torture.report.reading.store import Store

POWER = "iscsi_guest-standard-noslog-ext4-nasonly"
PANIC = "iscsi_guest-standard-noslog-ext4-panic-nasonly"
AWAY = "iscsi_guest-defaults-standard-noslog-ext4-away180-nasonly"
OTHER = "iscsi-standard-noslog-btrfs-nasonly"


def record(number: int, cell: str, verdict: Verdict, absence: Absence) -> TrialRecord:
    return record_in(Cell.parse(cell), verdict, trial=f"t{number}", seed=number, absence=absence)


def back(outage_ms: float, reconnect_ms: float) -> Absence:
    return Absence(outage_ms=outage_ms, reconnect_ms=reconnect_ms)


def dead(after_ms: float, remedy: Remedy) -> Absence:
    return Absence(outage_ms=190_000, offline_ms=after_ms, remedy=remedy)


RECORDS = (
    record(1, POWER, Verdict.INTACT, back(8_000, 2_000)),
    record(2, PANIC, Verdict.CORRUPTED, back(9_000, 3_000)),
    record(3, PANIC, Verdict.INTACT, back(20_000, 4_000)),
    record(4, AWAY, Verdict.OFFLINE, dead(131_000, Remedy.LOG_IN)),
    record(5, AWAY, Verdict.ROLLED_BACK, dead(133_000, Remedy.RESTART)),
    record(6, AWAY, Verdict.OFFLINE, dead(132_000, Remedy.LOG_IN)),
    record(7, OTHER, Verdict.INTACT, back(8_000, 2_000)),
)


@contextmanager
def stored(folder: Path, *records: TrialRecord) -> Iterator[Store]:
    with Store.open([write_run(folder / "run", records)]) as store:
        yield store


def rows_of(store: Store) -> dict[str, OutageCell]:
    cells = cell_figures(store.tallies())
    return {cell.figures.cell: cell for cell in outage_cells(store.sql, cells)}


def test_a_loss_of_power_of_the_same_cell_stands_beside_its_outages(tmp_path: Path) -> None:
    with stored(tmp_path, *RECORDS) as store:
        rows = rows_of(store)
    assert rows.keys() == {POWER, PANIC, AWAY}
    assert rows[POWER].columns == ("0 of 1", "10 s, at most 10 s", "")
    assert rows[PANIC].columns == ("0 of 2", "18 s, at most 24 s", "")
    assert rows[AWAY].columns == ("3 of 3, after 132 s", "", "log in 2, restart 1")
    assert rows[AWAY].figures.harm.events == 1, "an offline disk has lost nothing"


def test_without_an_outage_there_is_no_table(tmp_path: Path) -> None:
    with stored(tmp_path, RECORDS[-1]) as store:
        assert rows_of(store) == {}
        [report] = export_markdown(store, tmp_path)
        assert "## Outages" not in report.read_text()
        assert 'id="outages"' not in render_page(store)


def test_markdown_and_page_have_the_same_rows(tmp_path: Path) -> None:
    with stored(tmp_path, *RECORDS) as store:
        [report] = export_markdown(store, tmp_path)
        page = render_page(store)
    table = report.read_text().partition("## Outages")[2]
    assert 'id="outages"' in page
    for said in ("3 of 3, after 132 s", "18 s, at most 24 s", "log in 2, restart 1"):
        assert said in table
        assert said in page
