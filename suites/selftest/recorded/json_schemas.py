"""JSON Schemas of a run's documents, written from the types.

    python -m suites.selftest.recorded.json_schemas

writes `results/schema` anew.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator

import msgspec

from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.documents import Document
from torture.facts.evidence.folder import AdministrationDocument, Outage, part_kinds
from torture.files import CHECKOUT, write_whole
from torture.records.record.run_document import RunDocument
from torture.records.record.trials import CoreRecord, TrialRecord

FOLDER = CHECKOUT / "results" / "schema"
DOCUMENTS: dict[str, type[Document]] = {
    "administration": AdministrationDocument,
    "cut": CutDocument,
    "outage": Outage,
    "run": RunDocument,
    "trial": TrialRecord,
}
"""File to type: the documents of their names, and `trial` for a line of `trials.jsonl`."""
_UNWRITTEN = "observations"
"""The record leaves them to its evidence."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def main() -> None:
    """Write every schema."""
    for name, text in schemas().items():
        write_whole(FOLDER / name, text.encode())


def schemas() -> dict[str, str]:
    """File to content."""
    return {f"{name}.json": _text_of(of) for name, of in DOCUMENTS.items()}


def _text_of(of: type[Document]) -> str:
    schema = msgspec.json.schema(of)
    known = {each.__name__: each for each in _below(Document)}
    for name in schema["$defs"].keys() & known.keys():
        part, document = schema["$defs"][name], known[name]
        # a docstring has its indentation before Python 3.13, and none since
        part["description"] = inspect.cleandoc(part["description"])
        names = set(document.names()) - {_UNWRITTEN}
        for one in part["properties"].values():
            if isinstance(one.get("default"), dict):
                del one["default"]
        properties = {field: value for field, value in part["properties"].items() if field in names}
        for field, words in _words_of(document):
            if field in properties:
                properties[field]["description"] = words
        part["properties"] = properties
    while unused := [
        name for name in schema["$defs"] if f"/$defs/{name}" not in json.dumps(schema)
    ]:
        for name in unused:
            del schema["$defs"][name]
    return json.dumps({"$schema": _DIALECT} | schema, indent=1) + "\n"


def _below(of: type[Document]) -> Iterator[type[Document]]:
    for each in of.__subclasses__():
        yield from (each, *_below(each))


def _words_of(of: type[Document]) -> Iterator[tuple[str, str]]:
    """Each field with the docstring right below it; parts of a record have none there."""
    if of is TrialRecord:
        yield from _words_of(CoreRecord)
        yield from ((kind.FIELD, inspect.cleandoc(kind.__doc__ or "")) for kind in part_kinds())
        return
    [parsed] = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(parsed, ast.ClassDef)
    for field, below in zip(parsed.body, parsed.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(words))
            ):
                yield name, " ".join(words.split())


if __name__ == "__main__":
    main()
