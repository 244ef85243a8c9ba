"""Damaged lines of `trials.jsonl`: no good line is lost with them, and each is reported.

A cell's worth, on the page and in the tables: medians, or none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed, plain
from suites.selftest.unit.report_records import intact_records, make_records, page_of, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record import trials_file as lines_module
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import SCHEMA, Absence, Origin, Speed, TrialRecord
from torture.records.record.trials_file import OlderSchemaError, UnreadableLineError, read_line
from torture.report.exports import EXPORTS
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.wording import latency_in_words, speed_in_words
from torture.report.page.render import render_page
from torture.report.reading.store import Store
from torture.report.reading.tally import Worth
from torture.report.terminal import outage_lines

QUICK = cells_of(Matrix.QUICK)
SAFE = next(
    record for record in make_records(60, cells=QUICK, seed=1) if record.verdict is Verdict.INTACT
)
FORMER = "iscsi-always-slog-btrfs-bothdie"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


Opened = Callable[[bytes], tuple[list[str], tuple[str, ...]]]


def line_of(**fields: Any) -> bytes:
    return json.dumps(plain(SAFE, **fields)).encode()


def without(*fields: str) -> bytes:
    return line_of(**dict.fromkeys(fields, ...))


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Writes a good line, these bytes, and two more good lines; gives the trials found and the notes."""
    good = [
        json.dumps(record.as_json()).encode() for record in make_records(3, cells=QUICK, seed=9)
    ]
    names = {record.trial for record in make_records(3, cells=QUICK, seed=9)}

    def write_and_open(raw: bytes) -> tuple[list[str], tuple[str, ...]]:
        folder = write_run(tmp_path / "run", ())
        (folder / TRIALS_FILE).write_bytes(b"\n".join([good[0], raw, *good[1:], b""]))
        with Store.open([folder]) as store:
            found = [row[0] for row in store.sql.execute("SELECT trial FROM trials").fetchall()]
            assert names <= set(found), "a good line was lost"
            assert store.trials == len(found)
            return [trial for trial in found if trial not in names], store.notes

    return write_and_open


UNREADABLE = {
    "nothing of JSON": b"{",
    "garbage bytes": b"\xff\xfe\x80\x00\xc3",
    "invalid UTF-8 in a text": line_of(fsck="@").replace(b"@", b"\xff\xfe"),
    "NUL bytes": b"\0" * 4096,
    "a NUL in a text": line_of(fsck="@").replace(b"@", b"\0"),
    "no object": b"[1]",
    "null": b"null",
    "two objects": line_of() + line_of(),
    "too deep": line_of(cut="@").replace(b'"@"', b"[" * 100_000 + b"]" * 100_000),
    "a little too deep": line_of(cut="@").replace(b'"@"', b"[" * 200 + b"]" * 200),
    "NaN": line_of(rollback_ms=float("nan")),
    "an endless number": line_of(rollback_ms="@").replace(b'"@"', b"1e999"),
    "a number of 5000 digits": line_of(lost="@").replace(b'"@"', b"9" * 5000),
    "no trial": without("trial"),
    "an empty trial": line_of(trial=""),
    "a trial that is a number": line_of(trial=3),
    "no cell": without("cell"),
    "no verdict": without("verdict"),
    "no figures": without("lost", "acknowledged"),
    "half a figure": without("lost"),
    "a verdict that is a list": line_of(verdict=[]),
    "lost is a text": line_of(lost="x"),
    "lost is true": line_of(lost=True),
    "lost is null": line_of(lost=None),
    "lost is below nothing": line_of(lost=-1),
    "lost is a fraction": line_of(lost=0.5),
    "lost is beyond 63 bits": line_of(lost=2**63),
    "acknowledged is an object": line_of(acknowledged={}),
    "rollback_ms is a text": line_of(rollback_ms="12"),
    "rollback_ms is below nothing": line_of(rollback_ms=-0.1),
}


@pytest.mark.parametrize("what", list(UNREADABLE))
def test_a_line_that_is_no_record_is_reported_and_costs_no_other(what: str, opened: Opened) -> None:
    found, notes = opened(UNREADABLE[what])
    assert found == []
    (note,) = notes
    assert note.startswith(f"run/{TRIALS_FILE}: 1 line cannot be read and is left out: line 2 (")


def test_several_are_counted_and_the_first_is_named(opened: Opened) -> None:
    _, (note,) = opened(b"\n\n".join([b"{", b"[]", b"{}"]))
    assert "3 lines cannot be read and are left out, the first of them line 2 (" in note
    assert "it is not JSON, it is not a JSON object, it has no trial" in note


def test_a_line_without_end_is_skipped_and_not_held(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "LINE_BYTES_MAX", 1024**2)
    found, (note,) = opened(line_of(fsck="x" * 3_500_000))
    assert found == []
    assert "line 2 (longer than 1 MiB)" in note


def test_a_last_line_cut_off_anywhere_costs_only_itself(tmp_path: Path) -> None:
    records = list(make_records(3, cells=QUICK, seed=4))
    folder = write_run(tmp_path / "run", records)
    content = (folder / TRIALS_FILE).read_bytes()
    begin = content.rindex(b"\n", 0, -1) + 1
    for size in [begin, begin + 1, begin + 40, len(content) - 2]:
        (folder / TRIALS_FILE).write_bytes(content[:size])
        with Store.open([folder]) as store:
            assert store.trials == 2, size
            expected = [] if size == begin else ["the last line, line 3, was cut off"]
            assert [part for part in expected if part not in "".join(store.notes)] == []
            assert len(store.notes) == len(expected)
    (folder / TRIALS_FILE).write_bytes(content[:-1])
    with Store.open([folder]) as store:
        assert (store.trials, store.notes) == (3, ()), "only the line feed was missing"


@pytest.mark.parametrize("content", [b"", b"\n\n \r\n", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_trials(content: bytes, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ())
    (folder / TRIALS_FILE).write_bytes(content)
    with Store.open([folder]) as store:
        assert store.trials == 0
        assert not (*cell_figures(store.tallies()), *store.cases(most=9), *store.rollbacks())


def test_additions_of_other_programs_to_lines_are_no_fault() -> None:
    assert read_line(b"\xef\xbb\xbf" + line_of() + b"\r").record == SAFE


def test_a_seed_may_have_64_bits_and_not_more() -> None:
    assert read_line(line_of(seed=2**64 - 1)).record.seed == 2**64 - 1
    for seed in (2**64, -1, 1.5, True, "7"):
        with pytest.raises(UnreadableLineError, match="seed"):
            read_line(line_of(seed=seed))


@pytest.mark.parametrize(
    ("fields", "kept", "path"),
    [
        ({"axes": ["sync"]}, {"axes": {}}, "axes"),
        ({"cut": "now"}, {"cut": CutDocument()}, "cut"),
        ({"pool": 1}, {"pool": None}, "judgement.pool"),
        ({"torn": "many", "stale": 2}, {"stale": 2}, "judgement.findings.torn"),
        ({"fsck": {"said": "clean"}}, {"fsck": ""}, "judgement.fsck"),
        ({"reasons": "because"}, {"reasons": ()}, "judgement.reasons"),
        ({"reasons": ["because", 3]}, {"reasons": ()}, "judgement.reasons"),
        ({"figures": {"iops": "9", "mb": 3}}, {"figures": {}}, "judgement.findings.figures"),
        ({"timings": {"load": -3, "check": 7}}, {"timings": {}}, "timings"),
        ({"machinery_failed": "no"}, {"machinery_failed": False}, "machinery_failed"),
        (
            {"cut": {"t_ms": "noon", "phase": "idle"}},
            {"cut": CutDocument(phase="idle")},
            "cut.t_ms",
        ),
        (
            {"cut": {"marks": "many", "audit": {"broken": 1}}},
            {"cut": CutDocument(audit=AuditDocument(broken=1))},
            "cut.marks",
        ),
    ],
)
def test_a_bad_field_without_figures_is_left_out_and_reported(
    fields: dict[str, Any],
    kept: dict[str, Any],
    path: str,
    opened: Opened,
) -> None:
    assert read_line(line_of(**fields)).record == changed(SAFE, **kept)
    found, (note,) = opened(line_of(**fields))
    assert found == [SAFE.trial]
    assert f"has another type than it should, and is left out: {path}" in note


def test_foreign_fields_are_no_news_and_missing_ones_have_defaults(opened: Opened) -> None:
    assert opened(line_of(weather={"wind": [3]})) == ([SAFE.trial], ())
    bare = read_line(without("cut", "timings", "fsck", "reasons", "error")).record
    assert bare == changed(SAFE, cut=CutDocument(), timings={}, fsck="", reasons=())


@pytest.mark.parametrize(
    ("schema", "remark"),
    [
        (SCHEMA + 1, f"1 record has a newer schema ({SCHEMA + 1}), and what is new"),
        ("three", "1 field has another type than it should, and is left out: schema"),
    ],
)
def test_a_newer_schema_or_none_is_read_and_reported(
    schema: Any, remark: str, opened: Opened
) -> None:
    found, (note,) = opened(line_of(schema=schema))
    assert found == [SAFE.trial]
    assert remark in note


@pytest.mark.parametrize("schema", [SCHEMA - 1, 1])
def test_a_run_of_an_older_schema_is_refused(schema: int, opened: Opened) -> None:
    with pytest.raises(HarnessError, match=f"trials.jsonl has records of schema {schema}, and"):
        opened(line_of(schema=schema))


def test_an_unknown_verdict_counts_as_inconclusive_and_is_reported(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [SAFE])
    (folder / TRIALS_FILE).write_bytes(line_of(verdict="singed") + b"\n")
    with Store.open([folder]) as store:
        (figures,) = cell_figures(store.tallies())
        assert (figures.verdicts, figures.conclusive) == ({Verdict.INCONCLUSIVE: 1}, 0)
        assert "count" in store.notes[0]
        assert store.notes[0].endswith("counts as inconclusive: singed")
    assert "'singed'" in (read_line(line_of(verdict="singed")).record.error or "")


def test_a_cell_of_another_version_is_kept_under_its_own_name(tmp_path: Path) -> None:
    former = changed(
        SAFE, cell=FORMER, trial=f"{FORMER}.0000-00000000000000ff",
        axes={"slog": "slog"},
        guarantee="safe", verdict=Verdict.CORRUPTED, lost=2,
    )  # fmt: skip
    stranger = replace(former, cell="?", trial="?", guarantee="fingers crossed", axes={})
    with Store.open([write_run(tmp_path / "run", [former, stranger, SAFE])]) as store:
        figures = {own.cell: own for own in cell_figures(store.tallies())}
        assert figures.keys() == {FORMER, "?", SAFE.cell}
        assert figures[FORMER].axes == {"slog": "slog"}
        assert (figures[FORMER].guarantee, figures[FORMER].broken) == ("safe", 1)
        assert figures["?"].broken == 0, "of what was not guaranteed nothing is broken"
        assert any(f"kept under their own names: {FORMER}, ?" in note for note in store.notes)
        assert any(note.endswith("cannot have broken one: ?") for note in store.notes)


def test_todays_guarantee_counts_and_an_older_one_is_reported(tmp_path: Path) -> None:
    older = changed(SAFE, guarantee="loses", verdict=Verdict.CORRUPTED, lost=1)
    with Store.open([write_run(tmp_path / "run", [older])]) as store:
        (figures,) = cell_figures(store.tallies())
        (case,) = store.cases(most=5)
        assert (figures.guarantee, figures.broken) == (SAFE.guarantee, 1)
        assert (case.record.guarantee, case.broke_guarantee) == (SAFE.guarantee, True)
        assert "made under another guarantee" in store.notes[0]


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "\ud83d\ude00 \ud83d"])
def test_half_a_surrogate_pair_becomes_text_that_can_be_written(text: str) -> None:
    record = read_line(line_of(fsck=text, cut={text: [text]})).record
    assert "\N{REPLACEMENT CHARACTER}" in record.judgement.fsck
    json.dumps(record.as_json(), ensure_ascii=False).encode()


@given(field=st.sampled_from(list(TrialRecord.names())), value=json_values)
def test_with_anything_in_a_field_the_record_has_its_types_or_is_none(
    field: str, value: Any
) -> None:
    try:
        record = read_line(line_of(**{field: value})).record
    except (UnreadableLineError, OlderSchemaError):
        return
    # what a report does with a record: write it, take it back, count with it
    assert TrialRecord.from_json(
        json.loads(json.dumps(record.as_json(), allow_nan=False))
    ) == replace(record, schema=SCHEMA)
    assert record.lost + record.acknowledged + sum(record.timings.values()) >= 0
    words = (record.judgement.fsck, record.judgement.pool_summary, *record.reasons)
    assert all(isinstance(text, str) for text in words)


@given(raw=st.binary(max_size=60))
def test_with_any_bytes_a_line_is_a_record_or_is_none(raw: bytes) -> None:
    with pytest.raises(UnreadableLineError):
        read_line(raw)


CELL = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
OTHER = Cell.parse("iscsi-standard-noslog-btrfs-nasonly")
EXPECTED = Worth(
    durable_per_s=25.0, sync_p50_ms=2.5, sync_p99_ms=250.0, outage_ms=7500.0, reconnect_ms=150.0
)


def measured() -> list[TrialRecord]:
    """Four that tell, one that is silent, and two that must not count: inconclusive, and repeated."""
    records = intact_records(7, cells=[CELL], seed=2)
    measured = [
        replace(
            record,
            speed=Speed(durable_per_s=10.0 * n, sync_p50_ms=1.0 * n, sync_p99_ms=100.0 * n),
            absence=Absence(
                outage_ms=5000.0 + 1000 * n, reconnect_ms=60.0 * n, acknowledged_in_outage=0
            ),
        )
        for n, record in enumerate(records[:4], start=1)
    ]
    far = Speed(durable_per_s=1e6, sync_p50_ms=1e6, sync_p99_ms=1e6)
    return [
        *measured,
        records[4],
        changed(records[5], speed=far, verdict=Verdict.INCONCLUSIVE),
        replace(records[6], speed=far, origin=Origin.RERUN, repeats="x", origin_run="y"),
    ]


def test_a_cells_worth_is_the_median_of_conclusive_trials_with_a_measurement(
    tmp_path: Path,
) -> None:
    records = measured()
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        (figures,) = cell_figures(store.tallies())
        assert (figures.worth, figures.acknowledged_in_outage) == (EXPECTED, 0)
        assert figures.checked == sum(record.acknowledged for record in records[:5]) > 0
        files = EXPORTS["csv"].write(store, tmp_path)
        (document,) = EXPORTS["json"].write(store, tmp_path)
    rows = list(csv.DictReader((tmp_path / "cells.csv").read_text().splitlines()))
    for name in Worth.__dataclass_fields__:
        assert float(rows[0][name]) == getattr(EXPECTED, name)
        assert json.loads(document.read_text())["cells"][0][name] == getattr(EXPECTED, name)
    assert files
    listed = csv.DictReader((tmp_path / "trials.csv").read_text().splitlines())
    trials = {row["trial"]: row for row in listed}
    assert trials[records[1].trial]["sync_p50_ms"] == "2.0"
    assert trials[records[1].trial]["reconnect_ms"] == "120.0"
    assert trials[records[1].trial]["acknowledged_in_outage"] == "0"
    assert trials[records[4].trial]["outage_ms"] == ""


def test_records_without_measurements_have_no_worth(tmp_path: Path) -> None:
    records = intact_records(3, cells=[CELL], seed=2)
    run = write_run(tmp_path / "run", ())
    lines = [json.dumps(plain(record, speed=..., absence=...)) for record in records]
    (run / TRIALS_FILE).write_text("\n".join(lines))
    with Store.open([run]) as store:
        (figures,) = cell_figures(store.tallies())
        page = render_page(store)
    assert store.notes == ()
    assert figures.worth == Worth()
    assert not figures.worth.is_known
    assert "durable per second" not in page


def test_the_page_says_how_fast_and_how_it_was_made(tmp_path: Path) -> None:
    records = [*measured(), *intact_records(2, cells=[OTHER], seed=2)]
    page = page_of(write_run(tmp_path / "run", records))
    for words in ("2.5 ms, 250 ms", "7.5 s, 150 ms", "only ratios mean anything"):
        assert words in page, words


def test_an_acknowledgement_without_a_nas_is_a_case_and_is_reported(tmp_path: Path) -> None:
    sound, found = intact_records(2, cells=[OTHER], seed=2)
    why = "2 operations were acknowledged while no NAS could answer"
    found = changed(
        found,
        absence=Absence(outage_ms=1.0, acknowledged_in_outage=2, unfounded=2, lines=(8, 9)),
        reasons=(why,),
    )
    with Store.open([write_run(tmp_path / "run", [sound, found])]) as store:
        (case,) = store.cases(most=9)
        page = render_page(store)
        (line,) = outage_lines(cell_figures(store.tallies()))
    assert (case.record.trial, case.broke_guarantee) == (found.trial, False)
    assert case.record.absence == found.absence
    assert "2 operations were acknowledged while there was no NAS" in page
    assert "while no NAS could answer" in page
    assert line == f"{OTHER.name}: acknowledged while there was no NAS: 2"


@pytest.mark.parametrize(
    ("ms", "words"),
    [(None, ""), (0.0, "0.00 ms"), (0.994, "0.99 ms"), (0.996, "1.0 ms"), (9.94, "9.9 ms"),
     (9.96, "10 ms"), (250.0, "250 ms"), (999.6, "1.0 s")],
)  # fmt: skip
def test_latencies_have_two_digits(ms: float | None, words: str) -> None:
    assert latency_in_words(ms) == words


@pytest.mark.parametrize(
    ("per_s", "words"), [(None, ""), (8.44, "8.4"), (9.96, "10"), (1234.5, "1,234")]
)
def test_speeds_have_two_digits_at_least(per_s: float | None, words: str) -> None:
    assert speed_in_words(per_s) == words
