"""Speed beside safety: prices, fronts, published tables and the page, from made records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report.test_report_answer import figures
from suites.selftest.unit.report_records import intact_records, make_records, page_of, write_run
from suites.selftest.unit.speed.measured_records import (
    SYNC_4K,
    measured_job,
    measured_record,
    measured_rounds,
)
from torture.choices.matrix.cells import Cell
from torture.facts.stats.rates import rate_of
from torture.features.speed.documents import MeasuredJob
from torture.features.speed.jobs.jobs import SpeedJob
from torture.features.speed.jobs.published import TABLES
from torture.features.speed.jobs.slow_motion import Estimate
from torture.features.speed.trade.beside_published import Point, SweepDrawn
from torture.features.speed.trade.measurements import (
    NO_FIGURE,
    CellSpeed,
    Measurement,
    RoundKey,
    measurements_of,
    speed_of,
)
from torture.features.speed.trade.prices import Front, Trade, fronts_of, trade_of
from torture.features.speed.trade.trade_charts import SHAPES, drawn_sweep
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.answer import CUTS_TO_DETECT, Standing
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.pairs import grid_of
from torture.report.figures.sensitivity import Sensitivity, measured_sensitivity
from torture.report.figures.tables import fallen_cuts, kept_by_disks
from torture.report.page.vega import PHONE, WIDE, Frame
from torture.report.reading.store import Store

ALWAYS = "iscsi-always-noslog-btrfs-bothdie"
STANDARD = "iscsi-standard-noslog-btrfs-bothdie"
DISABLED = "iscsi-disabled-noslog-btrfs-bothdie"
SLOG = "iscsi-always-plp-sas-btrfs-bothdie"
NFS = "nfs4-standard-noslog-raidz1-files-bothdie"
SWEEPS = [sweep for table in TABLES for sweep in table.sweeps]
NFS_SLOG = "nfs4-standard-plp-sata-raidz1-files-bothdie"


def cuts(name: str, *, intact: int, lost: int = 0) -> list[TrialRecord]:
    made = intact_records(intact + lost, cells=[Cell.parse(name)], seed=7)
    back = {"verdict": Verdict.ROLLED_BACK, "lost": 1}
    return [*made[:intact], *(changed(record, **back) for record in made[intact:])]


def trade(
    tmp_path: Path, *runs: Sequence[TrialRecord], sensitivity: Sensitivity | None = None
) -> Trade:
    folders = [write_run(tmp_path / f"run{place}", records) for place, records in enumerate(runs)]
    with Store.open(folders) as store:
        cells = cell_figures(store.tallies())
        return trade_of(store, cells, sensitivity or Sensitivity(versions={}, faults=()))


def test_a_price_is_the_ratio_of_the_same_rounds(tmp_path: Path) -> None:
    """A round in which the host was slow makes both slow: the ratio is exact, and so is its interval."""
    slow = [1.0, 1.0, 3.0, 1.5]
    records = [
        *measured_rounds(DISABLED, [2.0 * by for by in slow]),
        *measured_rounds(ALWAYS, [6.2 * by for by in slow]),
        *cuts(ALWAYS, intact=40),
        *cuts(DISABLED, intact=2, lost=38),
    ]
    [price] = trade(tmp_path, records).prices
    assert (price.subject, price.other) == (ALWAYS, DISABLED)
    assert price.sentence == (
        "sync=always beside sync=disabled, with no SLOG, over iSCSI and 1 GbE, btrfs: "
        "synchronous writes of 4 KiB take 3.10 times (3.10 to 3.10) as long"
    )
    assert price.settings == (
        "iscsi|always|noslog|btrfs|usual",
        "iscsi|disabled|noslog|btrfs|usual",
    )
    assert price.losses.startswith("sync=always 0/40 0 % [0-")
    assert "sync=disabled 38/40 95 % [" in price.losses


def test_a_slog_has_its_price_beside_none(tmp_path: Path) -> None:
    records = [
        *measured_rounds(ALWAYS, [12.0, 12.5, 11.5, 12.0]),
        *measured_rounds(SLOG, [1.2, 1.25, 1.15, 1.2]),
        *measured_rounds(STANDARD, [1.0], link="gbe10"),
    ]
    [price] = trade(tmp_path, records).prices
    assert price.sentence.startswith(
        "No SLOG beside a SLOG on a SAS SSD, with sync=always, over iSCSI and 1 GbE, btrfs: "
        "synchronous writes of 4 KiB take 10.0 times ("
    )
    assert price.losses == ""


def test_a_difference_within_the_interval_is_none(tmp_path: Path) -> None:
    records = [
        *measured_rounds(STANDARD, [1.0, 1.1, 0.9, 1.0]),
        *measured_rounds(ALWAYS, [1.1, 1.0, 1.0, 0.95]),
    ]
    [price] = trade(tmp_path, records).prices
    assert price.sentence.startswith("sync=always does not measurably differ from sync=standard")


def test_no_pattern_stands_without_the_one_that_costs_tenfold(tmp_path: Path) -> None:
    """Small writes alone do not differ; the most expensive pattern comes first."""
    records = [
        *measured_rounds(STANDARD, [1.0, 1.1, 0.9, 1.0]),
        *measured_rounds(ALWAYS, [1.1, 1.0, 1.0, 0.95]),
        *[
            replace(record, trial=f"{record.trial}-row")
            for cell, ms in ((STANDARD, 1.0), (ALWAYS, 10.0))
            for record in measured_rounds(cell, [ms] * 4, job="write-128k-t1")
        ],
    ]
    [price] = trade(tmp_path, records).prices
    assert "does not measurably differ" not in price.sentence
    row, small = price.sentence.split(": ", 1)[1].split("; ")
    assert row.startswith("writes in a row of 128 KiB have 0.100 times")
    assert small.startswith("synchronous writes of 4 KiB take 1.0")


def test_rounds_of_different_runs_give_no_interval(tmp_path: Path) -> None:
    first = measured_rounds(ALWAYS, [6.0] * 4)
    [price] = trade(tmp_path, first, measured_rounds(DISABLED, [2.0] * 4)).prices
    assert price.sentence.endswith("take 3.0 times as long, measured in different runs")


def test_two_rounds_give_no_interval(tmp_path: Path) -> None:
    records = [*measured_rounds(ALWAYS, [6.0, 6.0]), *measured_rounds(DISABLED, [2.0, 2.0])]
    [price] = trade(tmp_path, records).prices
    assert price.sentence.endswith("take 3.0 times as long, in 2 rounds")


def test_the_emulators_time_is_no_figure(tmp_path: Path) -> None:
    records = [
        *measured_rounds(ALWAYS, [6.0] * 4),
        *measured_rounds(DISABLED, [2.0] * 4, share=0.2),
        *cuts(ALWAYS, intact=40),
        *cuts(DISABLED, intact=40),
    ]
    found = trade(tmp_path, records)
    assert found.prices == ()
    assert found.fronts == ()
    assert [row.speed.is_of_model for row in found.rows] == [True, False]


@pytest.mark.parametrize("intact", [0, 1, CUTS_TO_DETECT - 1, CUTS_TO_DETECT])
def test_too_few_cuts_are_called_so(intact: int, tmp_path: Path) -> None:
    records = [*measured_rounds(ALWAYS, [6.0] * 4), *cuts(ALWAYS, intact=intact)]
    [row] = trade(tmp_path, records).rows
    assert (row.figures is None) is (intact == 0)
    is_said = Standing.TOO_FEW.value in row.remarks
    assert is_said is (0 < intact < CUTS_TO_DETECT)


def test_cuts_without_a_loss_name_a_fault_that_they_detect(tmp_path: Path) -> None:
    records = [*measured_rounds(ALWAYS, [6.0] * 4), *cuts(ALWAYS, intact=40)]
    [row] = trade(tmp_path, records, sensitivity=measured_sensitivity()).rows
    assert any("would have detected the planted fault" in remark for remark in row.remarks)


def test_walked_states_stand_beside_the_speed_without_any_cut(tmp_path: Path) -> None:
    walks = pytest.importorskip("torture.features.walk.documents")
    [plain] = cuts(ALWAYS, intact=1)
    walk = walks.WalkDocument(recovered=300, outcomes={"intact": 298, "rolled-back": 2})
    walked = replace(plain, origin="walked", trial=f"walked.{plain.trial}", walk=walk)
    [row] = trade(tmp_path, [*measured_rounds(ALWAYS, [6.0] * 4), walked]).rows
    assert row.figures is None
    assert row.surveyed.startswith("2 of 300 recovered crash states lost something")


def test_cells_without_a_speed_are_counted(tmp_path: Path) -> None:
    records = [*measured_rounds(ALWAYS, [6.0]), *cuts(STANDARD, intact=3), *cuts(SLOG, intact=3)]
    assert trade(tmp_path, records).without_speed == 2


def on_front(front: Front) -> set[str]:
    return {point.figures.cell for point in front.points if point.is_on_front}


def test_the_front_has_the_cells_that_no_other_one_beats(tmp_path: Path) -> None:
    records = [
        *measured_rounds(ALWAYS, [12.0] * 4), *cuts(ALWAYS, intact=40),
        *measured_rounds(SLOG, [1.2] * 4), *cuts(SLOG, intact=40),
        *measured_rounds(STANDARD, [11.0] * 4), *cuts(STANDARD, intact=200),
        *measured_rounds(DISABLED, [1.0] * 4), *cuts(DISABLED, intact=2, lost=38),
    ]  # fmt: skip
    [front] = trade(tmp_path, records).fronts
    assert on_front(front) == {SLOG, STANDARD, DISABLED}
    assert [point.figures.cell for point in front.points] == [DISABLED, SLOG, STANDARD, ALWAYS]
    bounds = [point.lost_at_most for point in front.points]
    assert bounds[1] == rate_of(0, 40).high


def speed(name: str, ms: float) -> CellSpeed:
    key = RoundKey("run", "2.3.9", 0, 0)
    return speed_of(
        Measurement(
            cell=name,
            axes=Cell.parse(name).axes,
            place="volume",
            device="",
            job=SpeedJob.parse(SYNC_4K),
            link="gbe1",
            slow_motion=(1,),
            rounds={key: measured_job(ms)},
        )
    )


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=4))
def test_a_front_is_that_of_the_obvious_definition(places: list[tuple[int, int]]) -> None:
    """The places: the time, and the cuts without a loss. More of these have a lower bound."""
    named = dict(zip([ALWAYS, STANDARD, DISABLED, SLOG], places, strict=False))
    speeds = [speed(name, float(ms)) for name, (ms, _) in named.items()]
    cells = {name: figures(name, intact=intact) for name, (_, intact) in named.items()}
    [front] = fronts_of(speeds, cells)
    assert on_front(front) == {
        name
        for name, (ms, intact) in named.items()
        if not any(
            (other_ms < ms and other >= intact) or (other_ms <= ms and other > intact)
            for other_ms, other in places
        )
    }


def table_of(found: Trade, name: str) -> dict[str, tuple[str, ...]]:
    [table] = [one for one in found.published if one.table.name == name]
    return {row.row.words: row.ours for row in table.rows}


def test_ours_stand_beside_the_published_figures(tmp_path: Path) -> None:
    job = "syncwrite-64k-t4"
    records = [
        *measured_rounds(NFS, [31.25] * 4, job=job),
        *measured_rounds(NFS_SLOG, [6.25] * 4, job=job, share=0.3),
        measured_record(
            "iscsi-always-plp-raw-bothdie",
            [measured_job(0.03, link="", number=number) for number in range(4)],
            device="nvme",
        ),
        *measured_rounds("iscsi-standard-noslog-raidz1x7-raw-bothdie", [8.0] * 4, job="read-128k-t1"),
        *[
            replace(record, trial=record.trial.replace(".00", ".10"))
            for record in measured_rounds(
                "iscsi-standard-noslog-raidz1x7-raw-bothdie", [4.0] * 4, job="read-128k-t1", link="gbe10"
            )
        ],
    ]  # fmt: skip
    found = trade(tmp_path, records)
    assert [one.table for one in found.published] == list(TABLES)
    # four threads, each with 32 writes of 64 KiB a second
    assert table_of(found, "R3")["intent log in the pool"] == ("8.39 MB/s (8.38 to 8.39)",)
    assert table_of(found, "R3")["on an SSD"] == (NO_FIGURE,)
    assert table_of(found, "R4")["enterprise NVMe SSD"] == ("30.0 us (30.0 to 30.0)",)
    assert table_of(found, "R4")["hard disk"] == ("",)
    times = table_of(found, "R1")["by the NAS's memory"]
    assert times[0].startswith("2.0")
    assert times[1:] == ("", "")
    assert not any(table_of(found, "R5")["sync=always, no SLOG"])
    # a log device alone is no cell of the trade
    assert "iscsi-always-plp-raw-bothdie" not in {row.speed.measurement.cell for row in found.rows}


def sweeps_of(found: Trade, name: str) -> dict[str, dict[str, dict[float, float]]]:
    """The drawn points: by picture, curve, and place on the axis."""
    [table] = [one for one in found.published if one.table.name == name]
    return {
        drawn.sweep.words: {
            words: {point.at: round(point.figure.value) for point in points}
            for words, points in drawn.curves.items()
        }
        for drawn in table.sweeps
    }


def test_a_curve_has_the_measured_points_that_are_the_models(tmp_path: Path) -> None:
    def of(
        cell: str, job: str, ms: float, *, link: str = "gbe10", share: float = 0.05
    ) -> TrialRecord:
        jobs = [
            measured_job(ms, job=job, link=link, number=number, share=share) for number in range(4)
        ]
        record = measured_record(cell, jobs)
        return replace(record, trial=f"{record.trial}-{job}-{link}")

    found = trade(tmp_path, [
        of("iscsi-always-plp-sas-raw-bothdie", "syncwrite-4k-t1", 1.0),
        of("iscsi-always-plp-sas-raw-bothdie", "syncwrite-4k-t4", 2.0),
        of("iscsi-always-plp-sas-raw-bothdie", "syncwrite-4k-t16", 2.0, share=0.3),
        of("iscsi-standard-noslog-raw-bothdie", "write-0.5k-t1", 1.0, link="gbe1"),
        of("iscsi-standard-noslog-raw-bothdie", "write-128k-t1", 1.0),
    ])  # fmt: skip
    assert sweeps_of(found, "R1") == {}
    assert sweeps_of(found, "R5") == {
        "synchronous writes of 4 KiB by threads": {"sync=always, SAS SSD": {1: 1000, 4: 2000}},
        "writes of 128 KiB in a row": {"sync=standard, no SLOG": {1: 125}},
    }
    assert list(sweeps_of(found, "R6").values()) == [
        {"iSCSI, sectors of 512 bytes, 1 GbE": {0.5: 0}}
    ]


def test_each_sweep_has_a_mark_for_each_curve() -> None:
    for sweep in SWEEPS:
        assert len(sweep.curves) <= len(SHAPES)
        assert sweep.is_bars == (len(sweep.curves[0].ours) == 1)


@pytest.mark.parametrize("frame", [WIDE, PHONE])
def test_a_picture_names_each_curve_whole(frame: Frame) -> None:
    """Names that differ at their ends alone were cut to the same words."""
    for sweep in SWEEPS:
        point = Point(at=4, figure=Estimate(value=2, low=1, high=3))
        curves = {curve.words: (point,) for curve in sweep.curves}
        picture = drawn_sweep(SweepDrawn(sweep=sweep, curves=curves), frame)
        assert [words for words in curves if f">{words}<" not in picture] == []


# Measurements beside live trials: counted once, and in their own section of the page.

CELLS = [Cell.parse(ALWAYS), Cell.parse(DISABLED)]
LIVE = list(make_records(24, cells=CELLS, seed=3))
UNCUT = "iscsi-always-plp-btrfs-bothdie"
MEASURED = [
    *measured_rounds(ALWAYS, [10.0, 11.0, 9.0, 10.0]),
    *measured_rounds(UNCUT, [1.0, 1.1, 0.9, 1.0]),
    measured_record(ALWAYS, [measured_job(0.1, link="")], index=9, device="sas"),
    replace(
        changed(measured_record(DISABLED, []), verdict=Verdict.INCONCLUSIVE),
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
    assert volumes.keys() == {ALWAYS, UNCUT}
    assert list(volumes[ALWAYS].rounds) == list(volumes[UNCUT].rounds)
    assert [key[2:] for key in volumes[UNCUT].rounds] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [job.mean_ms for job in volumes[UNCUT].rounds.values()] == [1.0, 1.1, 0.9, 1.0]
    [alone] = [one for one in found if one.device]
    assert (alone.device, len(alone.rounds)) == ("sas", 1)


def test_a_pass_that_failed_keeps_its_place(tmp_path: Path) -> None:
    """Otherwise the second pass over this cell would be compared with the first over another one."""
    first, second = measured_rounds(ALWAYS, [10.0, 11.0, 9.0, 10.0])
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
    records: list[TrialRecord] = [measured_record(ALWAYS, [odd, measured_job(2.0, number=1)])]
    [found] = measured_in(write_run(tmp_path / "run", records))
    assert [job.mean_ms for job in found.rounds.values()] == [2.0]


def test_a_cell_of_another_version_keeps_its_own_axes(tmp_path: Path) -> None:
    record = replace(MEASURED[0], cell="warp-always", axes={"transport": "warp"})
    [found] = measured_in(write_run(tmp_path / "run", [record]))
    assert found.axes["transport"] == "warp"


# The section "Speed beside safety" on the page: there with measurements, and with hostile ones,
# too.

SLOG_RAW = "iscsi-always-plp-sas-raw-bothdie"


def test_a_page_without_measurements_has_no_section(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", cuts(ALWAYS, intact=3)))
    assert "Speed beside safety" not in page


def test_a_page_of_measurements_alone_says_that_there_are_no_cuts(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", measured_rounds(ALWAYS, [6.0] * 4)))
    assert "0 power cuts" in page
    assert "No power cut was measured." in page
    assert "no cuts of this configuration" in page
    assert "not walked" in page


def test_the_front_and_the_prices_are_on_the_page(tmp_path: Path) -> None:
    records = [
        *measured_rounds(ALWAYS, [12.0] * 4), *cuts(ALWAYS, intact=40),
        *measured_rounds(DISABLED, [1.0] * 4), *cuts(DISABLED, intact=2, lost=38),
    ]  # fmt: skip
    page = page_of(write_run(tmp_path / "run", records))
    assert page.count('aria-label="measured speed against loss"') == 2
    first_screen = page.split('<table id="grid">')[0]
    assert "synchronous writes of 4 KiB take 12.0 times" in first_screen
    text = re.sub(r"\s+", " ", page)
    assert "R6: sizes of blocks" in text


def test_a_sweep_is_drawn_where_something_of_it_was_measured(tmp_path: Path) -> None:
    records = measured_rounds(SLOG_RAW, [1.0] * 4, job="syncwrite-4k-t4", link="gbe10")
    page = page_of(write_run(tmp_path / "run", records))
    assert page.count('aria-label="synchronous writes of 4 KiB by threads"') == 2
    assert 'aria-label="writes of 128 KiB in a row"' not in page
    bars = measured_rounds(SLOG_RAW, [1.0] * 4, job="write-128k-t1", link="gbe10")
    assert 'aria-label="writes of 128 KiB in a row"' in page_of(write_run(tmp_path / "bars", bars))


def test_hostile_words_of_a_measurement_are_text(tmp_path: Path) -> None:
    job = measured_job(2.0, link="<script>x</script>")
    record = replace(
        measured_record(ALWAYS, [job]),
        cell="<img src=x>",
        axes={"sync": "<b>", "transport": "<i>"},
    )
    page = page_of(write_run(tmp_path / "run", [record]))
    assert "<img" not in page
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page
