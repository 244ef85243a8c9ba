"""`trials.jsonl`: what was appended is read back, whatever a crash did to the file's end.

The JSON Schemas in `results/schema`: as the types are, and what was published is valid by them.

A line with an odd value anywhere is a record whose figures are sound, or is no record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.recorded.json_schemas import DOCUMENTS, FOLDER, schemas
from suites.selftest.unit.examples import examples
from suites.selftest.unit.made_records import changed, trial_record
from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, DiskAtCut
from torture.facts.evidence.folder import AdministrationDocument
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE, RunLayout, read_run_document
from torture.records.record.trials import SCHEMA, Absence, Origin, Speed, TrialRecord
from torture.records.record.trials_file import (
    Odd,
    OlderSchemaError,
    UnreadableLineError,
    append_record,
    read_line,
    read_records,
    rewrite_records,
)

text = st.text(max_size=20)
names = st.text(min_size=1, max_size=20)
counts = st.integers(0, 10**9)
cuts = st.builds(
    CutDocument,
    t_ms=st.none() | st.floats(0, 1e6),
    plan=st.dictionaries(text, st.none() | st.booleans() | counts | text, max_size=3),
    hit=st.none() | st.booleans(),
    log_seq=st.none() | counts,
    acknowledged=st.none() | counts,
    disks=st.dictionaries(
        text, st.builds(DiskAtCut, policy=text, torn=st.none() | counts), max_size=2
    ),
)
records = st.builds(
    trial_record,
    trial=names,
    cell=names,
    axes=st.dictionaries(text, text, max_size=3),
    seed=st.integers(0, 2**64 - 1),
    verdict=st.sampled_from(Verdict),
    guarantee=text,
    cut=cuts,
    acknowledged=counts,
    lost=counts,
    rollback_ms=st.none() | st.floats(0, 1e6),
    figures=st.dictionaries(text, st.floats(0, 1e6), max_size=2),
    fsck=text,
    pool_summary=text,
    reasons=st.lists(text, max_size=3).map(tuple),
    timings=st.dictionaries(text, counts, max_size=3),
    error=st.none() | text,
    machinery_failed=st.booleans(),
)


def record(number: int, **other: Any) -> TrialRecord:
    cell = "iscsi-standard-noslog-btrfs-nasonly"
    plain = trial_record(
        trial=f"{cell}.{number:04d}",
        cell=cell,
        axes={"sync": "standard", "disk_sector": "sector4kn"},
        seed=2**64 - 1,
        verdict=Verdict.ROLLED_BACK,
        guarantee="loses",
        reasons=("größer: two words\nand a line",),
        timings={"set up NAS": 1200, "cut": 7},
    )
    return changed(plain, **other)


def test_the_same_trial_of_two_versions_of_zfs_is_two(file: Path) -> None:
    for zfs in ("2.3.9", "2.4.4", "2.3.9"):
        append_record(file, record(0, zfs=zfs))
    assert [found.zfs for found in read_records(file).records] == ["2.3.9", "2.4.4"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


@settings(
    deadline=None,
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(written=st.lists(records, max_size=4, unique_by=lambda own: own.trial))
def test_appended_records_are_read_back(file: Path, written: list[TrialRecord]) -> None:
    file.unlink(missing_ok=True)
    for own in written:
        append_record(file, own)
    found = read_records(file)
    assert list(found.records) == written
    assert found.unreadable_lines == 0


def test_a_line_is_one_object_with_the_documented_fields(file: Path) -> None:
    append_record(file, record(1))
    (line,) = file.read_text().splitlines()
    documented = {
        "trial", "cell", "axes", "seed", "guarantee", "judgement", "origin", "timings",
    }  # fmt: skip
    assert documented <= json.loads(line).keys()
    assert {"verdict", "reasons", "findings"} <= json.loads(line)["judgement"].keys()
    assert {"acknowledged", "lost", "torn"} <= json.loads(line)["judgement"]["findings"].keys()
    assert json.loads(line)["schema"] == SCHEMA


def test_a_missing_or_empty_file_has_no_records(file: Path) -> None:
    assert read_records(file).records == ()
    file.touch()
    assert read_records(file).records == ()
    assert read_records(file).unreadable_lines == 0


def test_a_last_line_cut_off_anywhere_costs_only_itself(file: Path) -> None:
    first, last = record(1), record(2)
    append_record(file, first)
    whole = file.stat().st_size
    append_record(file, last)
    content = file.read_bytes()
    for size in range(whole, len(content) + 1):
        file.write_bytes(content[:size])
        found = read_records(file)
        is_there = size >= len(content) - 1
        assert found.records == ((first, last) if is_there else (first,)), size
        assert found.unreadable_lines == int(whole < size < len(content) - 1), size


def test_appending_after_a_line_cut_off_anywhere_does_not_glue(file: Path) -> None:
    append_record(file, record(1))
    whole = file.stat().st_size
    append_record(file, record(2))
    content = file.read_bytes()
    for size in range(whole, len(content)):
        file.write_bytes(content[:size])
        append_record(file, record(3))
        append_record(file, record(4))
        found = {own.trial for own in read_records(file).records}
        assert {record(1).trial, record(3).trial, record(4).trial} <= found, size


@pytest.mark.parametrize(
    "line",
    [
        b"{}", b"null", b"3", b'"verdict"', b"[]", b'["verdict"]', b"{", b"\x00\x00\x00\x00",
        b"\xff\xfe", b'{"verdict": "fine"}', b'{"verdict": "intact"}', b'{"verdict": []}',
        b'{"trial": "x", "verdict": "intact", "reasons": null}',
        b'{"trial": "x", "cell": 7, "axes": {}, "seed": 1, "guarantee": "", "verdict": "intact"}',
        b'{"trial": "x", "cell": "x", "axes": {}, "seed": 1, "guarantee": "", "verdict": "intact", '
        b'"rollback_ms": "long"}',
        b"[" * 100_000,
        b'{"trial": ["x"], "cell": "x", "axes": {}, "seed": 1, "guarantee": "", "verdict": "intact"}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_is_counted_and_skipped(file: Path, line: bytes) -> None:
    append_record(file, record(1))
    with file.open("ab") as stream:
        stream.write(line + b"\n\n")
    append_record(file, record(2))
    found = read_records(file)
    assert found.records == (record(1), record(2))
    assert found.unreadable_lines == 1


def test_fields_of_a_later_version_are_ignored_and_missing_ones_have_defaults(file: Path) -> None:
    data = record(1).as_json()
    del data["timings"]
    file.write_text(json.dumps(data | {"weather": {"wind": 3}}) + "\n")
    assert read_records(file).records == (record(1, timings={}),)


def test_a_file_of_an_older_schema_is_refused_with_the_commit_that_reads_it(file: Path) -> None:
    append_record(file, record(1))
    of_schema_2 = {"trial": "x", "cell": "x", "verdict": "intact", "lost": 0, "schema": SCHEMA - 1}
    file.write_text(file.read_text() + json.dumps(of_schema_2) + "\n")
    with pytest.raises(HarnessError, match=r"has records of schema 2, .*\n.*worktree add"):
        read_records(file)


def test_the_last_record_of_a_trial_counts_in_the_place_of_its_first(file: Path) -> None:
    for number, verdict in ((1, Verdict.INCONCLUSIVE), (2, Verdict.INTACT), (1, Verdict.INTACT)):
        append_record(file, record(number, verdict=verdict))
    found = read_records(file).records
    assert [own.trial for own in found] == [record(1).trial, record(2).trial]
    assert [own.verdict for own in found] == [Verdict.INTACT] * 2


def test_the_first_conclusive_record_of_a_trial_counts(file: Path) -> None:
    for verdict in (Verdict.INCONCLUSIVE, Verdict.CORRUPTED, Verdict.INTACT, Verdict.INCONCLUSIVE):
        append_record(file, record(1, verdict=verdict))
    assert [own.verdict for own in read_records(file).records] == [Verdict.CORRUPTED]
    append_record(file, record(2, verdict=Verdict.INCONCLUSIVE, error="first"))
    append_record(file, record(2, verdict=Verdict.INCONCLUSIVE, error="second"))
    assert [own.error for own in read_records(file).records] == [None, "second"]


def test_a_record_names_the_files_of_its_run_by_their_place_in_it(tmp_path: Path) -> None:
    run = RunLayout(folder=tmp_path)
    log = run.evidence_of("a-trial") / "nas-1.console.log"
    relative = changed(
        record(1), error=f"it hung\n  next: read {log}", reasons=(f"at least that: read {log}",)
    ).with_relative_paths(run)
    assert relative.error == "it hung\n  next: read trials/a-trial/nas-1.console.log"
    assert relative.reasons == ("at least that: read trials/a-trial/nas-1.console.log",)
    assert record(1).with_relative_paths(run) == record(1)


def test_records_are_rewritten_in_their_places_and_all_else_stays_as_it_was(file: Path) -> None:
    later = json.dumps(record(3).as_json() | {"weather": "windy"}).encode() + b"\n"
    append_record(file, record(1, verdict=Verdict.INCONCLUSIVE))
    first = b'{"trial": \xff}\n\n'
    with file.open("ab") as stream:
        stream.write(first + later)
    append_record(file, record(1))
    with file.open("ab") as stream:
        stream.write(b'{"trial": "cut o')
    old = file.read_bytes()
    before = file.with_name("trials.jsonl.before")
    assert rewrite_records(file, [record(1, lost=2), record(3)]) == before
    assert before.read_bytes() == old
    before_it, *rest = old.splitlines(keepends=True)
    failed, *others, now, cut_off = file.read_bytes().splitlines(keepends=True)
    assert (failed, cut_off) == (before_it, rest[-1]), "a try that failed is still there"
    assert json.loads(now)["judgement"]["findings"]["lost"] == 2
    assert b"".join(others) == first + later


def test_no_file_that_was_kept_is_ever_replaced(file: Path) -> None:
    append_record(file, record(1))
    contents = [file.read_bytes()]
    for lost, name in ((2, ""), (3, "-2"), (4, "-3")):
        kept = rewrite_records(file, [record(1, lost=lost)])
        assert kept == file.with_name(f"trials.jsonl.before{name}")
        contents.append(file.read_bytes())
    kept_files = [file.with_name(f"trials.jsonl.before{name}") for name in ("", "-2", "-3")]
    assert [kept.read_bytes() for kept in kept_files] == contents[:3]
    assert rewrite_records(file, [record(1, lost=4)]) is None


RUNS = sorted(path for path in (CHECKOUT / "results" / "published").iterdir() if path.is_dir())


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((FOLDER / f"{name}.json").read_text()))


def test_they_are_as_the_types_are() -> None:
    """Else: python -m suites.selftest.recorded.json_schemas."""
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == schemas()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_is_a_schema_that_says_its_fields_in_words(name: str) -> None:
    schema = json.loads((FOLDER / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    wordless = {
        f"{document}.{field}"
        for document, part in schema["$defs"].items()
        for field, words in part.get("properties", {}).items()
        if "description" not in words
    }
    assert wordless == set()
    assert "others" not in schema["$defs"][DOCUMENTS[name].__name__]["properties"]


def test_every_verdict_and_origin_has_its_words() -> None:
    text = (CHECKOUT / "results" / "README.md").read_text("utf-8")
    words = set(re.findall(r"`([\w-]+)`", text.split("## Exports")[0]))
    assert words >= {*map(str, Verdict), *map(str, Origin)}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_published_documents_are_valid_in_the_newest_shape(run: Path) -> None:
    document = read_run_document(run)
    assert document is not None
    assert list(validator("run").iter_errors(document.as_json())) == []
    of_a_trial = validator("trial")
    for record in read_records(run / TRIALS_FILE).records:
        assert list(of_a_trial.iter_errors(record.as_json())) == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("trial", {"trial": "t", "cell": "c", "judgement": {"verdict": "singed"}}),
        ("trial", {"trial": "t", "cell": "c"}),
        ("run", {"seed": "7"}),
        ("cut", {"second": {"t_ms": "later"}}),
        ("outage", {"machine": "nas"}),
        ("administration", {"name": ""}),
    ],
)
def test_values_that_the_types_refuse_are_not_valid(name: str, wrong: Mapping[str, Any]) -> None:
    assert not validator(name).is_valid(wrong)


MADE = list(make_records(40, cells=cells_of(Matrix.QUICK), seed=4))
FULL = replace(
    MADE[0],
    administration=AdministrationDocument(name="snapshot"),
    speed=Speed(durable_per_s=12.5, sync_p50_ms=1.25, sync_p99_ms=80.0),
    absence=Absence(outage_ms=8500.0, reconnect_ms=0.0, acknowledged_in_outage=1, lines=(9,)),
    cut=replace(
        MADE[0].cut,
        audit=AuditDocument(acknowledgements=3, broken=1, findings=("a",)),
        second=CutDocument(t_ms=1.0, disks=MADE[0].cut.disks),
    ),
)
PLAIN = json.loads(json.dumps(FULL.as_json()))
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 2**64, 1.5, 1e300, "", "x", "\ud800", [], ["x"], {}, {"x": 1},
    {"x": [{"x": [{"x": [2**64]}]}]}, {"x": json.loads("[" * 200 + "]" * 200)},
)  # fmt: skip


def read(data: dict[str, Any]) -> None:
    """The record can be written, and has the identity and the counts of the line."""
    try:
        record = read_line(json.dumps(data).encode()).record
    except (UnreadableLineError, OlderSchemaError):
        return
    json.dumps(record.as_json(), allow_nan=False, ensure_ascii=False).encode()
    figures = data["judgement"]["findings"]
    assert (record.lost, record.acknowledged) == (figures["lost"], figures["acknowledged"])
    assert record.trial in (data["trial"], "\N{REPLACEMENT CHARACTER}")


def objects_in(data: Any) -> Iterator[dict[str, Any]]:
    """Every object within the data, from the outermost on."""
    if isinstance(data, dict):
        yield data
        for value in data.values():
            yield from objects_in(value)


@pytest.mark.parametrize("record", [*MADE, FULL])
def test_a_record_comes_back_whole(record: Any) -> None:
    reading = read_line(json.dumps(record.as_json()).encode())
    assert (reading.record, reading.odd) == (record, ())


@pytest.mark.parametrize("value", [..., *ODD_VALUES])
def test_with_an_odd_value_anywhere_or_none_no_figure_is_guessed(value: Any) -> None:
    for place, keys in enumerate(map(list, objects_in(PLAIN))):
        for key in [*keys, "of another version"]:
            data = json.loads(json.dumps(PLAIN))
            home = list(objects_in(data))[place]
            home[key] = value
            if value is ...:
                del home[key]
            read(data)


NESTED: list[tuple[dict[str, Any], str]] = [
    ({"judgement": []}, "judgement: Expected"),
    ({"judgement": {}}, "it has no judgement.verdict"),
    ({"judgement": {"verdict": 3}}, "judgement.verdict: Expected"),
    ({"judgement": {"verdict": "intact"}}, "it has no judgement.findings"),
    ({"judgement": {"verdict": "intact", "findings": {"lost": 1}}}, "it has no .*acknowledged"),
    ({"zfs": 3}, "zfs: Expected"),
    ({"cut": {"audit": {"broken": "1"}}}, "cut.audit.broken: Expected"),
    ({"cut": {"second": {"audit": {"broken": "1"}}}}, "cut.second.audit.broken: Expected"),
    ({"where": {"linux_nas": 3}}, "where: Expected"),
]


@pytest.mark.parametrize(("fields", "why"), NESTED)
def test_a_wrong_figure_or_identity_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(UnreadableLineError, match=f"^{why}"):
        read_line(json.dumps(FULL.as_json() | fields).encode())


def test_a_wrong_field_of_a_cut_is_left_out_alone_and_reported() -> None:
    cut = {"t_ms": 3.0, "second": {"t_ms": "later", "marks": 4}}
    reading = read_line(json.dumps(FULL.as_json() | {"cut": cut}).encode())
    assert reading.record == replace(FULL, cut=CutDocument(t_ms=3.0, second=CutDocument(marks=4)))
    assert reading.odd == ((Odd.FIELD, "cut.second.t_ms"),)
