"""Lines as this version writes them are read in one pass, with the outcome of the patient reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.exact_documents import document_of, exactly
from torture.facts.evidence.folder import AdministrationDocument
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.lines import (
    Odd,
    OlderSchemaError,
    Reading,
    UnreadableLineError,
    read_line,
)
from torture.records.record.trials import SCHEMA, TrialRecord

MADE = list(make_records(40, cells=cells_of(Matrix.QUICK), seed=4))
FULL = replace(
    MADE[0],
    administration=AdministrationDocument(name="snapshot"),
    cut=replace(
        MADE[0].cut,
        audit=AuditDocument(acknowledgements=3, broken=1, findings=("a",)),
        second=CutDocument(t_ms=1.0, disks=MADE[0].cut.disks, others={"new": 1}),
    ),
)
SECOND = replace(FULL.cut, second=replace(CutDocument(t_ms=1.0), disks=FULL.cut.disks))
PLAIN = json.loads(json.dumps(replace(FULL, cut=SECOND).as_json()))
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 2**64, 1.5, 1e300, "", "x", "\ud800", [], ["x"], {}, {"x": 1},
    {"x": [{"x": [{"x": [2**64]}]}]}, {"x": json.loads("[" * 200 + "]" * 200)},
)  # fmt: skip


def line_of(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode()


def patiently(raw: bytes) -> Reading | str:
    with patch("torture.records.record.lines.exactly", return_value=None):
        return read(raw)


def read(raw: bytes) -> Reading | str:
    try:
        return read_line(raw)
    except (UnreadableLineError, OlderSchemaError) as error:
        return str(error)


def objects_in(data: Any) -> Iterator[dict[str, Any]]:
    """Every object within the data, from the outermost on."""
    if isinstance(data, dict):
        yield data
        for value in data.values():
            yield from objects_in(value)


@pytest.mark.parametrize("record", [*MADE, replace(FULL, cut=MADE[0].cut)])
def test_a_line_of_this_version_needs_one_pass(record: TrialRecord) -> None:
    raw = line_of(record.as_json())
    twin = exactly(TrialRecord, raw)
    assert twin is not None
    assert document_of(TrialRecord, twin) == record
    assert record.schema == SCHEMA
    assert read(raw) == patiently(raw)


def test_a_second_cut_is_read_with_the_fields_of_another_version() -> None:
    raw = line_of(FULL.as_json())
    assert exactly(TrialRecord, raw) is None
    assert read_line(raw).record == FULL


@pytest.mark.parametrize("value", ODD_VALUES)
def test_a_line_with_an_odd_value_is_read_as_by_the_patient_reader(value: Any) -> None:
    for place, keys in enumerate(map(list, objects_in(PLAIN))):
        for key in [*keys, "of another version"]:
            data = json.loads(json.dumps(PLAIN))
            list(objects_in(data))[place][key] = value
            raw = line_of(data)
            assert read(raw) == patiently(raw), key


def test_a_line_without_a_field_is_read_as_by_the_patient_reader() -> None:
    for place, keys in enumerate(map(list, objects_in(PLAIN))):
        for key in keys:
            data = json.loads(json.dumps(PLAIN))
            del list(objects_in(data))[place][key]
            raw = line_of(data)
            assert read(raw) == patiently(raw), key


# Errors in the nested parts of a line: the judgement, its findings, a second cut.

NEW = next(
    record
    for record in make_records(60, cells=cells_of(Matrix.QUICK), seed=1)
    if record.verdict is Verdict.INTACT
)
NESTED: list[tuple[dict[str, Any], str]] = [
    ({"judgement": []}, "judgement has a wrong type or value"),
    ({"judgement": {}}, "it has no verdict"),
    ({"judgement": {"verdict": 3}}, "verdict is no name"),
    ({"judgement": {"verdict": "intact", "findings": {"lost": -1}}}, "lost is no count"),
    (
        {"judgement": {"verdict": "intact", "findings": {"rollback_ms": "1"}}},
        "rollback_ms is no time",
    ),
]


@pytest.mark.parametrize(("fields", "why"), NESTED)
def test_a_wrong_figure_of_the_judgement_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(UnreadableLineError, match=f"^{why}$"):
        read_line(json.dumps(NEW.as_json() | fields).encode())


def test_a_garbled_second_cut_is_left_out_and_reported() -> None:
    cut = {"t_ms": 3.0, "second": {"t_ms": "later", "marks": 4}}
    read = read_line(json.dumps(NEW.as_json() | {"cut": cut}).encode())
    assert read.record.cut == CutDocument(t_ms=3.0, second=CutDocument(marks=4))
    assert read.odd == ((Odd.FIELD, "cut.second.t_ms"),)


def test_a_record_without_findings_lacks_its_figures() -> None:
    judgement = {"verdict": "intact"}
    read = read_line(json.dumps(NEW.as_json() | {"judgement": judgement}).encode())
    assert read.odd == ((Odd.MISSING, "acknowledged"), (Odd.MISSING, "lost"))
