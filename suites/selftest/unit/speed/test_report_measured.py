"""Measurements beside live trials: counted once, and in their own section of the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from suites.selftest.unit.speed.measured_records import (
    measured_job,
    measured_record,
    measured_rounds,
)
from suites.selftest.unit.speed.test_report_trade import ALWAYS, DISABLED, cuts
from torture.choices.matrix.cells import Cell
from torture.features.speed.documents import MeasuredJob
from torture.features.speed.trade.measurements import Measurement, measurements_of
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.pairs import grid_of
from torture.report.figures.tables import fallen_cuts, kept_by_disks
from torture.report.page.render import render_page
from torture.report.reading.store import Store

MEASURED_ALWAYS = "iscsi-always-noslog-btrfs-bothdie"
MEASURED_DISABLED = "iscsi-disabled-noslog-btrfs-bothdie"
CELLS = [Cell.parse(MEASURED_ALWAYS), Cell.parse(MEASURED_DISABLED)]
LIVE = list(make_records(24, cells=CELLS, seed=3))
UNCUT = "iscsi-always-plp-btrfs-bothdie"
MEASURED = [
    *measured_rounds(MEASURED_ALWAYS, [10.0, 11.0, 9.0, 10.0]),
    *measured_rounds(UNCUT, [1.0, 1.1, 0.9, 1.0]),
    measured_record(MEASURED_ALWAYS, [measured_job(0.1, link="")], index=9, device="sas"),
    replace(
        changed(measured_record(MEASURED_DISABLED, []), verdict=Verdict.INCONCLUSIVE),
        error="no answer",
    ),
]


def measured_in(*runs: Path) -> list[Measurement]:
    with Store.open(runs) as store:
        return measurements_of(store.lines)


def test_no_figure_of_cuts_changes(tmp_path: Path) -> None:
    plain = write_run(tmp_path / "plain" / "run", LIVE)
    both = write_run(tmp_path / "both" / "run", [*MEASURED[:3], *LIVE, *MEASURED[3:]])
    with Store.open([plain]) as store, Store.open([both]) as other:
        assert other.trials == store.trials == len(LIVE)
        assert other.notes == store.notes
        assert other.tallies() == store.tallies()
        assert grid_of(cell_figures(other.tallies())) == grid_of(cell_figures(store.tallies()))
        assert other.breaches() == store.breaches()
        assert fallen_cuts(other.sql) == fallen_cuts(store.sql)
        assert kept_by_disks(other.sql) == kept_by_disks(store.sql)
        assert other.audited() == store.audited()
        assert other.rollbacks() == store.rollbacks()
        assert other.losses(most=99)[0] == store.losses(most=99)[0]
        trials = [[case.record.trial for case in one.cases(most=99)] for one in (other, store)]
        assert trials[0] == trials[1]
        assert (other.zfs_versions, other.accelerators) == (store.zfs_versions, store.accelerators)


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_exports_of_cells_are_the_same(form: str, tmp_path: Path) -> None:
    texts = []
    for name, records in (("plain", LIVE), ("both", [*MEASURED, *LIVE])):
        run = write_run(tmp_path / name / "run", records)
        with Store.open([run]) as store:
            written = EXPORTS[form].write(store, run.parent)
        texts.append([path.read_text().replace(f"/{name}/", "/") for path in written])
    assert texts[0] == texts[1]


def test_the_table_of_trials_has_them_with_their_origin(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [*LIVE, *MEASURED])
    with Store.open([run]) as store:
        rows = store.sql.execute("SELECT origin, count(*) FROM trials GROUP BY ALL").fetchall()
    assert dict(rows) == {"live": len(LIVE), "measured": len(MEASURED)}


def test_rounds_are_alike_in_all_cells_of_a_run(tmp_path: Path) -> None:
    found = measured_in(write_run(tmp_path / "run", [*LIVE, *MEASURED]))
    volumes = {one.cell: one for one in found if not one.device}
    assert volumes.keys() == {MEASURED_ALWAYS, UNCUT}
    assert list(volumes[MEASURED_ALWAYS].rounds) == list(volumes[UNCUT].rounds)
    assert [key[2:] for key in volumes[UNCUT].rounds] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [job.mean_ms for job in volumes[UNCUT].rounds.values()] == [1.0, 1.1, 0.9, 1.0]
    [alone] = [one for one in found if one.device]
    assert (alone.device, len(alone.rounds)) == ("sas", 1)


def test_a_pass_that_failed_keeps_its_place(tmp_path: Path) -> None:
    """Otherwise the second pass over this cell would be compared with the first over another one."""
    first, second = measured_rounds(MEASURED_ALWAYS, [10.0, 11.0, 9.0, 10.0])
    failed = changed(first, verdict=Verdict.INCONCLUSIVE, measured=None)
    [found] = measured_in(write_run(tmp_path / "run", [failed, second]))
    assert {key.turn for key in found.rounds} == {1}


def test_a_record_in_two_runs_of_a_report_counts_once(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a" / "run", MEASURED[:2])
    copy = write_run(tmp_path / "b" / "run", MEASURED[:2])
    [found] = measured_in(run, copy)
    assert len(found.rounds) == 4
    other = write_run(tmp_path / "c" / "other", MEASURED[:2])
    [both] = measured_in(run, other)
    assert len(both.rounds) == 8


@pytest.mark.parametrize(
    "odd",
    [
        MeasuredJob(job="syncwrite-4k-t1", link="gbe1", round=0),
        replace(measured_job(3.0), job="teleport-4k-t1"),
        replace(measured_job(3.0), mib_per_s=0.0),
    ],
)
def test_an_odd_round_is_left_out(odd: MeasuredJob, tmp_path: Path) -> None:
    records: list[TrialRecord] = [
        measured_record(MEASURED_ALWAYS, [odd, measured_job(2.0, number=1)])
    ]
    [found] = measured_in(write_run(tmp_path / "run", records))
    assert [job.mean_ms for job in found.rounds.values()] == [2.0]


def test_a_cell_of_another_version_keeps_its_own_axes(tmp_path: Path) -> None:
    record = replace(MEASURED[0], cell="warp-always", axes={"transport": "warp"})
    [found] = measured_in(write_run(tmp_path / "run", [record]))
    assert found.axes["transport"] == "warp"


# The section "Speed beside safety" on the page: there with measurements, and with hostile ones,
# too.

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
