"""The JSON Schemas in `results/schema`: as the types are, and what was published is valid by them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from suites.selftest.recorded.json_schemas import DOCUMENTS, FOLDER, schemas
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE, read_run_document
from torture.records.record.trials import Origin
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
