"""The glossary of ARCHITECTURE.md and the code's public names are of one language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from torture.checkout import CHECKOUT
from torture.oracles.verdict.verdicts import Verdict

ROW = re.compile(r"^\| (\*\*.+?) \| (.+) \| (.*) \|$", re.MULTILINE)
GIVEN_UP = {
    "promise": "guarantee, or acknowledged",
    "promised": "acknowledged",
    "bench": "machines",
    "crew": "controller",
    "cage": "sandbox",
    "caged": "sandboxed",
    "keeper": "ledger server",
    "strike": "cut",
    "look": "inspect",
    "judged": "score",
    "wish": "request",
    "wishes": "requests",
    "asks": "requests",
}
"""Words that meant what another word means now."""


def glossary() -> str:
    text = (CHECKOUT / "ARCHITECTURE.md").read_text()
    return text.split("## The words")[1].split("\n## ")[0]


def public_names() -> Iterator[str]:
    """Modules, and the public classes, functions, methods and fields in them."""
    for path in (CHECKOUT / "torture").rglob("*.py"):
        yield path.stem
        yield from _names_in(ast.parse(path.read_text()).body)


def _names_in(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name
            yield from _names_in(node.body)
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


NAMES = {name for name in public_names() if not name.startswith("_")}


def test_the_verdicts_are_those_of_the_code() -> None:
    row = glossary().split("Verdicts, from best to worst: ")[1].split(" (")[0]
    assert re.findall(r"`([\w-]+)`", row) == list(Verdict)[:-1]
    assert list(Verdict)[-1] is Verdict.INCONCLUSIVE


def test_every_name_of_the_glossary_is_in_the_code() -> None:
    rows = ROW.findall(glossary())
    assert len(rows) > 20
    named = {name for _, _, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert named <= NAMES


def test_no_word_is_explained_twice() -> None:
    words = [
        word
        for term, _, _ in ROW.findall(glossary())
        for word in re.findall(r"\*\*(.+?)\*\*", term)
    ]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("word", GIVEN_UP)
def test_a_word_that_was_given_up_is_in_no_public_name(word: str) -> None:
    parts = re.compile(r"[A-Z]?[a-z]+")
    found = {name for name in NAMES if word in [part.lower() for part in parts.findall(name)]}
    assert not found, f"say {GIVEN_UP[word]}"
