"""Errors in the nested parts of a line: the judgement, its findings, a second cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import CutDocument
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.lines import Odd, UnreadableLineError, read_line

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
