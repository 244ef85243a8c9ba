"""The JSON Schemas in `results/schema`: as the types are, and what was published is valid by them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from suites.selftest.recorded.json_schemas import DOCUMENTS, FOLDER, schemas
from torture.checkout import CHECKOUT
from torture.facts.evidence.documents import OTHERS, Document
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.run_document import read_run_document
from torture.records.record.run_layout import TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records

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
    own = schema["$defs"][DOCUMENTS[name].__name__]["properties"]
    assert any("description" in field for field in own.values())
    assert "others" not in own


def fields_from(document: type[Document]) -> Iterator[str]:
    yield from set(document.names()) - {OTHERS}
    for inner in document.documents_within():
        if inner is not document:
            yield from fields_from(inner)


def test_every_field_and_verdict_of_a_record_has_its_words() -> None:
    text = (CHECKOUT / "results" / "README.md").read_text("utf-8")
    words = set(re.findall(r"`([\w-]+)`", text.split("## Exports")[0]))
    assert words >= {*fields_from(TrialRecord), *map(str, Verdict)}


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
