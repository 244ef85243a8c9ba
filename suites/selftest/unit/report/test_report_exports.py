"""The exports, read back with common readers: the same figures, and hostile text stays text."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import AXES, cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import CutDocument, Phase
from torture.facts.stats.rates import Rate
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import Absence, TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.answer import answer, theory_of
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.tables import CELL_COLUMNS, CELL_RATES, EXPORT_SCHEMA
from torture.report.figures.wording import rate_in_words
from torture.report.reading.columns import TRIAL_COLUMNS
from torture.report.reading.store import Store
from torture.report.reading.text import escaped

CELLS = cells_of(Matrix.DEFAULT)
RECORDS = tuple(make_records(300, cells=CELLS, seed=8))
HOSTILE = (
    "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "<script>alert(1)</script>",
    "a | b `c`\nd", "]]>&amp;\"'", "\x00\x01\x1b[31m\x7f\u202e", "\U0001f600 größer", "x,\"y\"\r\nz",
    "https://example.org www.example.org", "',DROP TABLE trials;--",
)  # fmt: skip

Exported = Callable[..., dict[str, Path]]


def hostile_records() -> list[TrialRecord]:
    """Records with hostile text wherever a text can be; one broke its guarantee."""
    bad = replace(
        next(record for record in RECORDS if record.verdict is Verdict.CORRUPTED),
        guarantee="safe",
        seed=2**64 - 1,
    )
    return [
        changed(bad, trial=f"{text}{n}", cell=text, axes={text: text, "sync": text}, fsck=text,
                pool_summary=text, reasons=(text, text), error=text,
                cut=CutDocument(plan={"aim": text, text: text}))
        for n, text in enumerate(HOSTILE)
    ]  # fmt: skip


@pytest.fixture
def exported(tmp_path: Path) -> Exported:
    """Exports records in a format; gives the files by name."""

    def export(form: str, records: Any, **more: Any) -> dict[str, Path]:
        folder = write_run(tmp_path / "run", records, **more)
        output = tmp_path / "out 'put"
        output.mkdir()
        with Store.open([folder]) as store:
            paths = EXPORTS[form].write(store, output)
        assert sorted(output.iterdir()) == sorted(paths), "nothing else is left"
        return {path.name: path for path in paths}

    return export


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[CellFigures, ...]:
    with Store.open([write_run(tmp_path_factory.mktemp("figures") / "run", RECORDS)]) as store:
        return cell_figures(store.tallies())


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def number(text: str) -> float | None:
    return float(text) if text else None


def test_csv_has_every_trial(exported: Exported) -> None:
    rows = rows_of(exported("csv", RECORDS)["trials.csv"])
    assert list(rows[0]) == [*TRIAL_COLUMNS, "export_schema"]
    by_trial = {row["trial"]: row for row in rows}
    assert len(rows) == len(by_trial) == len(RECORDS)
    for record in RECORDS:
        row = by_trial[record.trial]
        assert {axis: row[axis] for axis in AXES} == record.axes == json.loads(row["axes"])
        assert int(row["seed"]) == record.seed
        assert int(row["index"]) == int(record.trial.split(".")[1].split("-")[0])
        assert (row["verdict"], row["guarantee"]) == (record.verdict, record.guarantee)
        assert (int(row["acknowledged"]), int(row["lost"])) == (record.acknowledged, record.lost)
        assert number(row["rollback_ms"]) == record.rollback_ms
        assert number(row["cut_ms"]) == record.cut.t_ms
        assert row["reasons"] == "\n".join(record.reasons)
        assert row["error"] == (record.error or "")
        assert int(row["missing"]) == record.judgement.findings.missing
        assert number(row["load_ms"]) == record.timings.get("load")
        assert row["machinery_failed"] == str(record.machinery_failed).lower()
        assert row["run"] == "run"
        assert int(row["export_schema"]) == EXPORT_SCHEMA


def test_csv_has_every_cell(exported: Exported, figures: tuple[CellFigures, ...]) -> None:
    rows = rows_of(exported("csv", RECORDS)["cells.csv"])
    assert list(rows[0]) == list(CELL_COLUMNS)
    for row, expected in zip(rows, figures, strict=True):
        assert (row["cell"], row["guarantee"]) == (expected.cell, expected.guarantee)
        assert (int(row["trials"]), int(row["conclusive"])) == (
            expected.trials,
            expected.conclusive,
        )
        for verdict in Verdict:
            assert int(row[verdict.replace("-", "_")]) == expected.verdicts.get(verdict, 0)
        assert (row["answer_group"], row["confidence"]) == (theory_of(expected), "0.95")
        for name in CELL_RATES:
            rate = getattr(expected, name)
            assert int(row[f"{name}_events"]) == rate.events
            assert float(row[f"{name}_share"]) == rate.share
            assert (float(row[f"{name}_low"]), float(row[f"{name}_high"])) == (rate.low, rate.high)
        assert number(row["acknowledged_per_s"]) == expected.acknowledged_per_s
        most = expected.rollback_ms.most if expected.rollback_ms else None
        assert number(row["rollback_most_ms"]) == most


def test_a_spreadsheet_finds_no_formula_and_no_control_character(exported: Exported) -> None:
    files = exported("csv", hostile_records())
    for path in files.values():
        rows = rows_of(path)
        assert len(rows) == len(HOSTILE)
        for row in rows:
            for name, text in row.items():
                assert not re.match(r"[=+\-@\t\r\n]", text), name
                assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text), name
    fscks = {row["fsck"] for row in rows_of(files["trials.csv"])}
    assert {"'=cmd|' /C calc'!A0", "'-1", "'@SUM(1)", "<script>alert(1)</script>"} <= fscks


def test_parquet_has_the_same_tables_with_types_and_texts_as_they_were(exported: Exported) -> None:
    records = hostile_records()
    files = exported("parquet", records)
    assert sorted(files) == ["cells.parquet", "trials.parquet"]
    with duckdb.connect() as sql:
        trials, cells = (
            sql.read_parquet(str(files[f"{name}.parquet"])) for name in ("trials", "cells")
        )
        assert trials.columns == [*TRIAL_COLUMNS, "export_schema"]
        assert cells.columns == list(CELL_COLUMNS)
        types = dict(zip(trials.columns, map(str, trials.types), strict=True))
        assert (types["seed"], types["rollback_ms"]) == ("UBIGINT", "DOUBLE")
        assert (types["broke_guarantee"], types["lost"]) == ("BOOLEAN", "BIGINT")
        found = set(trials.project("trial, cell, fsck, reasons, seed").fetchall())
        assert found == {
            (record.trial, record.cell, record.judgement.fsck, "\n".join(record.reasons), 2**64 - 1)
            for record in records
        }
        schema = sql.execute(
            "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'export_schema'",
            [str(files["trials.parquet"])],
        ).fetchall()
        assert schema == [(str(EXPORT_SCHEMA).encode(),)]


def test_json_has_every_figure(exported: Exported, figures: tuple[CellFigures, ...]) -> None:
    (path,) = exported("json", RECORDS).values()
    found = json.loads(path.read_text("utf-8"))
    assert (found["export_schema"], found["confidence"]) == (EXPORT_SCHEMA, 0.95)
    assert (found["trials"], found["notes"]) == (len(RECORDS), [])
    (run,) = found["runs"]
    assert (run["run"], run["seed"], run["is_sequential"]) == ("run", 1, False)
    assert run["options"]["keep"] == "bad"
    for cell_, expected in zip(found["cells"], figures, strict=True):
        assert (cell_["cell"], cell_["axes"]) == (expected.cell, expected.axes)
        assert sum(cell_["verdicts"].values()) == expected.trials
        assert cell_["answer_group"] == theory_of(expected)
        for name in CELL_RATES:
            rate = getattr(expected, name)
            assert cell_[name].pop("share") == rate.share
            assert Rate(**cell_[name]) == rate
    for group, expected_group in zip(found["groups"], answer(figures), strict=True):
        assert group["sentence"] == expected_group.sentence
        assert group["cells"] == [own.cell for own in expected_group.cells]
        assert group["harm"].pop("share") == expected_group.together.share
        assert Rate(**group["harm"]) == expected_group.together
        assert group["worst_bound"] == expected_group.worst_bound


def test_sequential_intervals_are_marked(exported: Exported) -> None:
    until = {"until": "upper<0.01"}
    (path,) = exported("json", RECORDS, options=until).values()
    found = json.loads(path.read_text("utf-8"))
    assert found["runs"][0]["is_sequential"]
    assert all(cell["loss"]["is_sequential"] for cell in found["cells"])


def test_markdown_begins_with_the_answer_and_has_a_row_a_cell(
    exported: Exported, figures: tuple[CellFigures, ...]
) -> None:
    (path,) = exported("markdown", RECORDS).values()
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"
    assert lines[4].startswith("- **theory says safe: 0 of ")
    head, _, *rows = [line for line in lines if line.startswith("|")]
    for row, expected in zip(rows, figures, strict=True):
        values = dict(zip(head.split(" | "), unescape(row).split(" | "), strict=True))
        assert values["| cell"] == f"| {expected.cell}"
        unresolved = expected.unresolved
        assert values["lost or damaged"] == rate_in_words(expected.harm, unresolved)
        assert values["acknowledged loss"] == rate_in_words(expected.loss, unresolved)
        assert values["corruption |"] == f"{rate_in_words(expected.corruption, unresolved)} |"
        assert [int(values[verdict]) for verdict in Verdict if verdict in values] == [
            expected.verdicts.get(verdict, 0) for verdict in Verdict if verdict in values
        ]


def test_markdown_has_a_cell_a_column_with_any_names(exported: Exported) -> None:
    (path,) = exported("markdown", hostile_records()).values()
    text = path.read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(HOSTILE)
    assert len({row.count("|") for row in rows}) == 1
    assert "**1**" in rows[-1], "it broke its guarantee"
    assert "<script" not in text
    assert "https:" not in text
    assert "`" not in text


@given(st.text() | st.sampled_from(HOSTILE))
def test_escaped_text_shows_itself_and_is_no_syntax(text: str) -> None:
    shown = escaped(text)
    assert not re.search(
        r"[<>|`*_\[\]\\~@#!\n\r]|www\.|:/|&(?!#\d+;)", re.sub(r"&#\d+;", "", shown)
    )
    without_controls = re.sub(r"[\s\W]", "", unescape(shown))
    assert without_controls == re.sub(r"[\s\W]", "", text)


@pytest.mark.parametrize("form", list(EXPORTS))
def test_without_a_trial_every_export_is_there_and_empty(form: str, exported: Exported) -> None:
    for path in exported(form, ()).values():
        assert path.stat().st_size > 0
        assert RECORDS[0].cell not in path.read_bytes().decode("latin-1")


@pytest.mark.parametrize("form", list(EXPORTS))
def test_a_failed_write_leaves_the_old_file_and_no_partial_one(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    with Store.open([write_run(tmp_path / "run", RECORDS)]) as store:
        before = {path: path.read_bytes() for path in EXPORTS[form].write(store, output)}

        def no_room(*_: object) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr("os.fsync", no_room)
        with pytest.raises((HarnessError, OSError), match="no space left"):
            EXPORTS[form].write(store, output)
    assert {path: path.read_bytes() for path in output.iterdir()} == before


def test_plain_fields_of_a_record_are_columns_without_an_entry(exported: Exported) -> None:
    record = replace(RECORDS[0], writers=3, writers_failed=2, absence=Absence(unfounded=1))
    (row,) = rows_of(exported("csv", [record])["trials.csv"])
    assert (row["writers"], row["writers_failed"], row["unfounded"]) == ("3", "2", "1")


def test_every_column_is_documented() -> None:
    documented = (Path(__file__).parents[4] / "results" / "README.md").read_text("utf-8")
    exports = documented[documented.index("## Exports") :]
    for name in {*TRIAL_COLUMNS, *CELL_COLUMNS}:
        assert re.search(rf"`{name}`", exports), name
    of_trials = exports[exports.index("| column |") : exports.index("`cells`, sorted by name")]
    names = re.findall(
        r"`(\w+)`", " ".join(row.split("|")[1] for row in of_trials.splitlines() if row)
    )
    assert set(names) == {*TRIAL_COLUMNS, "export_schema"}, "what is documented is there"
    assert f"export schema {EXPORT_SCHEMA}" in exports


def test_every_phase_is_documented() -> None:
    documented = (Path(__file__).parents[4] / "results" / "README.md").read_text("utf-8")
    section = documented.split("| phase | state of the disks |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", section, re.M)) == set(Phase)
