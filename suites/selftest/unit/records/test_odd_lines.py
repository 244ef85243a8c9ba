"""A line with an odd value anywhere is a record whose figures are sound, or is no record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.folder import AdministrationDocument
from torture.records.record.trials_file import Odd, OlderSchemaError, UnreadableLineError, read_line

MADE = list(make_records(40, cells=cells_of(Matrix.QUICK), seed=4))
FULL = replace(
    MADE[0],
    administration=AdministrationDocument(name="snapshot"),
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
