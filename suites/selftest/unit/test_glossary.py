"""The code against the glossary of ARCHITECTURE.md and the map of README: one language, every room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict

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


# README's map of the code has every wing and room of `torture/`, and no other folder.

LINES_MAX = 45
HEADING = "\n## Where the code is\n\n```\n"
LINE = re.compile(r"( *)((?:\w+/ )*\w+/) +(\S.*)")
"""The indentation, the folders on this line, and their description."""
INDENT = 2


def map_text() -> str:
    """The tree in README, without its fences."""
    return (CHECKOUT / "README.md").read_text().split(HEADING)[1].split("```")[0].rstrip("\n")


def folders_in(tree: str) -> list[str]:
    """The path of each folder that a tree draws, in its order."""
    found: list[str] = []
    above: list[str] = []
    for line in tree.splitlines():
        parts = LINE.fullmatch(line)
        assert parts, f"no folder with a description: {line!r}"
        names = [name.rstrip("/") for name in parts[2].split()]
        above = [*above[: len(parts[1]) // INDENT], names[-1]]
        found += ["/".join([*above[:-1], name]) for name in names]
    return found


def code_folders() -> set[str]:
    """The wings and rooms of the engine."""
    modules = (CHECKOUT / "torture").rglob("*.py")
    parts = (path.parent.relative_to(CHECKOUT).parts[:3] for path in modules)
    return {"/".join(part[:depth]) for part in parts for depth in range(1, len(part) + 1)}


def test_the_map_has_every_wing_and_room_once() -> None:
    drawn = [path for path in folders_in(map_text()) if path.split("/")[0] == "torture"]
    assert sorted(drawn) == sorted(code_folders())


def test_every_folder_of_the_map_is_there() -> None:
    assert [path for path in folders_in(map_text()) if not (CHECKOUT / path).is_dir()] == []


def test_the_map_is_short() -> None:
    assert len(map_text().splitlines()) <= LINES_MAX


def test_no_other_document_draws_it() -> None:
    documents = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").glob("*.md")]
    drawn = [path.name for path in documents if re.search(r"^ +oracles/ ", path.read_text(), re.M)]
    assert drawn == ["README.md"]


def test_folders_are_found_in_a_tree() -> None:
    tree = "tools/    thin\nengine/   all\n  a/        one\n    b/ c/     two\n  d/        three"
    assert folders_in(tree) == [
        "tools",
        "engine",
        "engine/a",
        "engine/a/b",
        "engine/a/c",
        "engine/d",
    ]
