"""The table of all transports: its rows, their order and values; hostile text stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.axes import NFS_EXPORT, SLOG, SYNC
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.planning import cuts_to_detect, rate_detected
from torture.facts.stats.rates import rate_of
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Absence, Speed, TrialRecord
from torture.report.exports import EXPORTS
from torture.report.exports._transports import TransportRow, transport_rows
from torture.report.reading.store import Store
from torture.report.reading.tally import Worth

SAFE = "iscsi-always-noslog-{}-nasonly"
ROLLS_BACK = "iscsi-disabled-noslog-{}-bothdie"
HOSTILE = ("<script>alert(1)</script>", "a | b `c`\nd", "**x** [y](z)", "", "www.example.org")


def ended(
    name: str, count: int, verdict: Verdict = Verdict.INTACT, **more: Any
) -> list[TrialRecord]:
    """Trials of a cell that all ended so; each lost something if the verdict says so."""
    return [
        changed(
            record,
            verdict=verdict,
            error=None,
            lost=2 if verdict.is_loss else 0,
            rollback_ms=800.0 + number if verdict is Verdict.ROLLED_BACK else None,
            **more,
        )
        for number, record in enumerate(
            make_records(count, cells=[Cell.parse(name)], seed=len(name))
        )
    ]


def roads_in(
    tmp_path: Path, records: Sequence[TrialRecord], **more: Any
) -> dict[str, tuple[TransportRow, ...]]:
    run = write_run(tmp_path / "run", records, **more)
    with Store.open([run]) as store:
        return dict(transport_rows(store))


def written(tmp_path: Path, records: Sequence[TrialRecord]) -> str:
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        (path,) = EXPORTS["roads"].write(store, tmp_path)
    assert path.name == "roads.md"
    return path.read_text("utf-8")


def test_filesystems_are_one_row_and_all_else_is_not(tmp_path: Path) -> None:
    fast = Speed(durable_per_s=40.0)
    records = [
        *ended(SAFE.format("btrfs"), 3, speed=Speed(durable_per_s=10.0)),
        *ended(SAFE.format("ext4"), 4, speed=fast),
        *ended(SAFE.format("xfs"), 9, Verdict.INCONCLUSIVE, speed=Speed(durable_per_s=1.0)),
        *ended(SAFE.replace("noslog", "plp").format("ext4"), 4),
        *ended(SAFE.replace("nasonly", "bothdie").format("raw"), 1),
        *ended(SAFE.replace("nasonly", "postgres-nasonly").format("ext4"), 5),
    ]
    (rows,) = roads_in(tmp_path, records).values()
    assert [(row.pooled, row.figures.conclusive) for row in rows] == [
        (("raw",), 1), (("btrfs", "ext4", "xfs"), 7), (("ext4",), 5), (("ext4",), 4),
    ]  # fmt: skip
    assert rows[2].axes["workload"] == "postgres"
    together = rows[1]
    assert together.cells == tuple(SAFE.format(name) for name in ("btrfs", "ext4", "xfs"))
    assert together.figures.loss == rate_of(0, 7)
    assert together.figures.worth == Worth(durable_per_s=40.0), "of conclusive trials, not of cells"


def test_a_clients_root_splits_no_row_and_is_named_where_it_differs(tmp_path: Path) -> None:
    booted = SAFE.replace("nasonly", "boot-nasonly").format("ext4")
    records = [*ended(SAFE.format("raw"), 1), *ended(SAFE.format("ext4"), 2), *ended(booted, 4)]
    (rows,) = roads_in(tmp_path, records).values()
    assert [(row.pooled, row.figures.conclusive) for row in rows] == [
        (("ext4", "raw", "imageroot", "boot"), 7)
    ]


def test_a_row_went_back_as_far_as_any_cell_of_it(tmp_path: Path) -> None:
    records = [
        *ended(ROLLS_BACK.format("btrfs"), 2, Verdict.ROLLED_BACK),
        *(
            changed(record, rollback_ms=4200.0)
            for record in ended(ROLLS_BACK.format("ext4"), 2, Verdict.ROLLED_BACK)
        ),
    ]
    (rows,) = roads_in(tmp_path, records).values()
    assert rows[0].figures.rollback_ms is not None
    assert (rows[0].figures.rollback_ms.least, rows[0].figures.rollback_ms.most) == (
        800.0,
        4200.0,
    )


def test_every_cell_is_in_one_row_and_every_trial_counts(tmp_path: Path) -> None:
    cells = cells_of(Matrix.FULL)
    records = tuple(make_records(600, cells=cells, seed=4))
    sections = roads_in(tmp_path, records)
    rows = [row for section in sections.values() for row in section]
    assert sorted(name for row in rows for name in row.cells) == sorted(
        {record.cell for record in records}
    )
    assert sum(row.figures.trials for row in rows) == len(records)
    losses = sum(record.is_loss for record in records)
    assert sum(row.figures.loss.events for row in rows) == losses
    back = sum(record.verdict is Verdict.ROLLED_BACK for record in records)
    assert sum(row.rolled_back.events for row in rows) == back


def test_rows_stand_in_the_order_of_the_axes(tmp_path: Path) -> None:
    records = tuple(make_records(300, cells=cells_of(Matrix.DEFAULT), seed=4))
    by_transport = roads_in(tmp_path, records)
    assert len(by_transport) > 5
    for rows in by_transport.values():
        places = [
            [
                axis.names.index(choice)
                for axis in (NFS_EXPORT, SYNC, SLOG)
                if (choice := row.axes[axis.field])
            ]
            for row in rows
        ]
        assert places == sorted(places)


def test_a_row_has_the_rate_that_its_cuts_detect(tmp_path: Path) -> None:
    (rows,) = roads_in(tmp_path, ended(SAFE.format("btrfs"), 59)).values()
    (row,) = rows
    assert row.detectable_from == pytest.approx(0.0495, abs=1e-4)
    silent = ended(SAFE.format("btrfs"), 2, Verdict.INCONCLUSIVE)
    (rows,) = roads_in(tmp_path / "silent", silent).values()
    assert rows[0].detectable_from is None


@pytest.mark.parametrize("cuts", [1, 2, 20, 59, 1000])
def test_the_detected_rate_inverts_the_number_of_cuts(cuts: int) -> None:
    rate = rate_detected(cuts, probability=0.95)
    assert (1 - rate) ** cuts == pytest.approx(0.05)
    assert cuts_to_detect(rate * 1.0001, probability=0.95) == cuts


@pytest.mark.parametrize(
    ("name", "count", "verdict", "expected"),
    [
        (SAFE, 40, Verdict.INTACT, "safe, as predicted"),
        (SAFE, 5, Verdict.INTACT, "too few cuts to say"),
        (SAFE, 5, Verdict.CORRUPTED, "worse than predicted (5 of 5)"),
        (ROLLS_BACK, 5, Verdict.ROLLED_BACK, "as predicted"),
        (ROLLS_BACK, 40, Verdict.INTACT, "better: not seen yet"),
        (SAFE, 2, Verdict.INCONCLUSIVE, "no answer"),
    ],
)
def test_a_row_stands_against_theory(
    tmp_path: Path, name: str, count: int, verdict: Verdict, expected: str
) -> None:
    (rows,) = roads_in(tmp_path, ended(name.format("btrfs"), count, verdict)).values()
    assert rows[0].comparison == expected


def test_the_table_says_all_of_a_row(tmp_path: Path) -> None:
    measured: dict[str, Any] = {
        "speed": Speed(durable_per_s=123.4, sync_p50_ms=0.5, sync_p99_ms=88.0),
        "absence": Absence(outage_ms=7200.0, reconnect_ms=310.0),
    }
    records = [
        *ended(SAFE.format("btrfs"), 20, **measured),
        *ended(SAFE.format("ext4"), 1, Verdict.INCONCLUSIVE),
        *ended(ROLLS_BACK.format("btrfs"), 4, Verdict.ROLLED_BACK),
    ]
    text = written(tmp_path, records)
    assert "## iSCSI\n\nLIO iblock on a zvol; the client's QEMU is the initiator.\n" in text
    safe, back = (line for line in text.splitlines() if line.startswith("| sync="))
    none = "0/20 0 % [0-17 %]; 1 inconclusive: as safe 0/21 0 % [0-17 %], as lost 1/21 4.8 % [0.12-24 %]"
    assert safe == (
        "| sync=always, no SLOG, the VM lives on | btrfs, ext4 | safe | 20 (and 1 inconclusive) "
        f"| {none} | {none} | {none} | {none} | 14 % | 123 | 0.50 ms, 88 ms "
        "| 7.2 s | 310 ms | too few cuts to say |"
    )
    assert back == (
        "| sync=disabled, no SLOG, the VM dies too | btrfs | rolls back | 4 | 4/4 100 % [39-100 %] "
        "| 4/4 100 % [39-100 %] "
        "| 4/4 100 % [39-100 %], up to 0.8 s | 0/4 0 % [0-61 %] | 53 % | - | - | - | - | as predicted |"
    )
    assert "only ratios mean" in text
    assert "allow for that" not in text
    assert "OpenZFS" not in text.split("## Runs")[1], "the run does not say"


def test_worse_rows_and_acknowledgements_without_a_nas_stand_out(tmp_path: Path) -> None:
    found = Absence(outage_ms=1.0, acknowledged_in_outage=3, unfounded=3, lines=(5, 6, 7))
    text = written(tmp_path, ended(SAFE.format("btrfs"), 2, absence=found))
    (row,) = (line for line in text.splitlines() if line.startswith("| sync="))
    assert row.endswith("| **worse than predicted (2 of 2)**; 6 acknowledged without a NAS |")


def test_runs_that_stopped_at_their_answer_say_so(tmp_path: Path) -> None:
    until = {"until": "upper<0.01"}
    run = write_run(tmp_path / "run", ended(SAFE.format("btrfs"), 5), options=until)
    with Store.open([run]) as store:
        (path,) = EXPORTS["roads"].write(store, tmp_path)
        (rows,) = dict(transport_rows(store)).values()
    assert rows[0].rolled_back.is_sequential
    assert "the intervals allow for that" in path.read_text()


def test_hostile_names_are_text_and_break_no_table(tmp_path: Path) -> None:
    (record,) = ended(SAFE.format("btrfs"), 1)
    records = [
        replace(record, trial=f"t{n}", cell=text or "empty", guarantee=text,
                axes={"transport": text, "sync": text, text: text, "filesystem": text})
        for n, text in enumerate(HOSTILE)
    ]  # fmt: skip
    text = written(tmp_path, records)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3 * len(HOSTILE)
    assert len({row.count("|") for row in rows}) == 1
    assert "<script" not in text
    assert "](" not in text
    assert "`" not in text
    assert not re.search(r"www\.", text)
    assert "## No known transport" in text


def test_a_name_of_another_axis_is_no_transport(tmp_path: Path) -> None:
    (record,) = ended(SAFE.format("btrfs"), 1)
    text = written(tmp_path, [replace(record, cell="x", axes={"transport": "raw"})])
    assert "## raw\n\n|" in text
