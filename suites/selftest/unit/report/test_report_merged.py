"""Several runs written as one: no line lost or doubled, and the next report has equal figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.records.record.run_layout import TRIALS_FILE
from torture.records.record.trials_file import read_records
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.merged import write_merged
from torture.report.reading.runs import find_run
from torture.report.reading.store import Store

CELLS = cells_of(Matrix.QUICK)
RECORDS = tuple(make_records(90, cells=CELLS, seed=5))


def shards(root: Path) -> list[Path]:
    return [
        write_run(
            root / f"shard-{n}" / f"run{n}",
            [record for record in RECORDS if record.cell in {each.name for each in CELLS[n::3]}],
            options={"cells": [each.name for each in CELLS[n::3]], "shard": f"{n + 1}/3"},
            begun=f"2026-11-2{n}T00:00:00+0000",
        )
        for n in range(3)
    ]


def test_merged_shards_are_the_whole_run_line_by_line(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole", RECORDS)
    shards(tmp_path / "night")
    with Store.open([tmp_path / "night"]) as store:
        merged = write_merged(store, tmp_path / "site" / "run")
        figures = cell_figures(store.tallies())
    lines = (merged / TRIALS_FILE).read_bytes().splitlines()
    assert sorted(lines) == sorted((whole / TRIALS_FILE).read_bytes().splitlines())
    found = read_records(merged / TRIALS_FILE).records
    order = [(record.cell, int(record.trial.rsplit(".")[-1].split("-")[0])) for record in found]
    assert order == sorted(order)
    with Store.open([merged]) as again, Store.open([whole]) as unsharded:
        assert cell_figures(again.tallies()) == figures == cell_figures(unsharded.tallies())
        assert again.notes == ()


def test_its_run_json_has_the_fields_they_agree_on(tmp_path: Path) -> None:
    with Store.open(shards(tmp_path / "night")) as store:
        run = find_run(write_merged(store, tmp_path / "merged"))
    assert (run.name, run.document.seed) == ("merged", 1)
    assert run.document.merged == ("run0", "run1", "run2")
    assert run.document.versions == {"qemu": "7.2.22"}
    assert run.document.begun == "2026-11-20T00:00:00+0000"
    assert run.document.options["cells"] == sorted(cell.name for cell in CELLS)
    assert run.document.options["keep"] == "bad"
    assert "shard" not in run.document.options
    assert not run.document.is_sequential


def test_that_one_of_them_stopped_early_and_other_seeds_are_not_forgotten(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "fixed", RECORDS[:9], seed=1),
        write_run(tmp_path / "until", RECORDS[9:], seed=2, options={"until": "upper<0.01"}),
    ]
    with Store.open(runs) as store:
        run = find_run(write_merged(store, tmp_path / "merged"))
    assert run.document.is_sequential
    assert run.document.seed is None


def test_a_merged_run_still_reports_the_lines_that_were_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "night", RECORDS)
    with (run / TRIALS_FILE).open("ab") as file:
        file.write(b"{broken}\n")
    with Store.open([run]) as store:
        merged = write_merged(store, tmp_path / "merged")
        notes = store.notes
    with Store.open([merged]) as again:
        assert again.notes == tuple(f"merged: {note}" for note in notes)
        assert len(notes) == 1


def test_a_line_is_kept_as_it_was_with_unknown_fields(tmp_path: Path) -> None:
    line = json.dumps(RECORDS[0].as_json() | {"weather": "größer"}, indent=None).encode()
    run = write_run(tmp_path / "run", ())
    (run / TRIALS_FILE).write_bytes(b"  " + line + b" \r\n")
    with Store.open([run]) as store:
        merged = write_merged(store, tmp_path / "merged")
    assert (merged / TRIALS_FILE).read_bytes() == b"  " + line + b" \r\n"


def test_it_replaces_a_merged_run_and_nothing_else(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", RECORDS[:9])
    second = write_run(tmp_path / "second", RECORDS[9:])
    with Store.open([first]) as store:
        write_merged(store, tmp_path / "merged")
        before = (first / TRIALS_FILE).read_bytes()
        for taken in (first, second):
            with pytest.raises(HarnessError, match="already holds a run"):
                write_merged(store, taken)
        assert (first / TRIALS_FILE).read_bytes() == before
    with Store.open([first, second]) as store:
        write_merged(store, tmp_path / "merged")
    with Store.open([tmp_path / "merged"]) as store:
        assert store.trials == len(RECORDS)
        with pytest.raises(HarnessError, match="already holds a run"):
            write_merged(store, tmp_path / "merged")
