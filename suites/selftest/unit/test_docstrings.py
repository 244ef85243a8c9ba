"""Docstrings and comments are in plain English: short sentences, and without two vague words.

A reader may know English as a second language. `ROOMS` grows with each rewritten room.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT

ROOMS = (
    "fixtures",
    "suites",
    "tools",
    "torture/choices",
    "torture/facts/axes",
    "torture/facts/evidence",
    "torture/facts/recording",
    "torture/facts/speed",
    "torture/facts/stats",
    "torture/facts/wire",
    "torture/facts/zfs",
    "torture/machines",
    "torture/oracles/audit",
    "torture/oracles/verdict",
    "torture/records",
    "torture/report",
    "torture/setup",
    "torture/trials",
)
"""Files, and folders with all files below them, that keep the rules."""

WITHOUT_WHAT = (
    "fixtures",
    "suites",
    "tools",
    "torture/facts",
    "torture/report/exports",
    "torture/report/night",
    "torture/setup",
)
"""The same, where names and docstrings write the noun itself instead of `what`. It grows likewise."""

SENTENCE_WORDS_MAX = 25
UNWANTED = re.compile(r"\b(told|nobody)\b", re.IGNORECASE)

CODE = re.compile(r"`[^`]+`")
NEW_BLOCK = re.compile(r"\n\s*[-*]\s|\n\s*\n")
"""The beginning of an item of a list, or an empty line."""

END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<=[.!?])[)\"']*\s+")
DISPLAYED = "    "
"""Begins a line that is a formula or an example, and no sentence."""


def files(rooms: Sequence[str] = ROOMS) -> list[Path]:
    found = []
    for room in rooms:
        place = CHECKOUT / room
        found += sorted(place.rglob("*")) if place.is_dir() else [place]
    return [path for path in found if path.is_file() and is_python(path)]


def is_python(path: Path) -> bool:
    """By the ending, or by the first line of a tool."""
    if path.suffix:
        return path.suffix == ".py"
    with path.open("rb") as file:
        return b"python" in file.readline()


def docstrings_in(source: str) -> Iterator[str]:
    """Those of modules, classes and functions, and those below a field or constant."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)), col_offset=indent):
                first, *rest = text.split("\n")
                yield "\n".join([first, *(line.removeprefix(" " * indent) for line in rest)])


def comments_in(source: str) -> Iterator[str]:
    """The comments; whole lines of comment right below each other are one."""
    lines: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        number, column = token.start
        is_whole_line = not token.line[:column].strip()
        if lines and (number != last + 1 or not is_whole_line):
            yield "\n".join(lines)
            lines = []
        lines.append(token.string.lstrip("#! "))
        last = number if is_whole_line else -1
    if lines:
        yield "\n".join(lines)


def sentences_in(text: str) -> list[str]:
    """The sentences of a docstring or comment; a span of code is one word."""
    prose = "\n".join(line for line in text.split("\n") if not line.startswith(DISPLAYED))
    blocks = NEW_BLOCK.split(CODE.sub("CODE", prose))
    pieces = [piece for block in blocks for piece in END.split(" ".join(block.split()))]
    return [piece for piece in pieces if piece]


def words_in(sentence: str) -> int:
    """How many words; a sign that stands alone is none."""
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def complaints(source: str) -> list[str]:
    """The sentences of a module that break a rule."""
    found = []
    for text in (*docstrings_in(source), *comments_in(source)):
        for sentence in sentences_in(text):
            if (count := words_in(sentence)) > SENTENCE_WORDS_MAX:
                found.append(f"{count} words: {sentence}")
            if unwanted := UNWANTED.search(sentence):
                found.append(f"'{unwanted[0]}': {sentence}")
    return found


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_docstrings_and_comments_are_plain(file: Path) -> None:
    assert complaints(file.read_text()) == []


def vague_in(source: str) -> list[str]:
    """The names of functions and classes with the word `what`, and the sentences that begin with it."""
    defined = [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    names = [name for name in defined if not {"what", "whatever"}.isdisjoint(name.split("_"))]
    sentences = [text for docstring in docstrings_in(source) for text in sentences_in(docstring)]
    return names + [text for text in sentences if text.startswith("What ")]


@pytest.mark.parametrize("room", WITHOUT_WHAT)
def test_names_and_docstrings_have_the_noun_itself(room: str) -> None:
    vague = {str(path): vague_in(path.read_text()) for path in files((room,))}
    assert {path: found for path, found in vague.items() if found} == {}


def test_vague_names_and_docstrings_are_found() -> None:
    source = 'def test_it_does_what_it_says():\n    """A. What it says."""\nclass Whatnot: pass\n'
    assert vague_in(source) == ["test_it_does_what_it_says", "What it says."]


def test_every_room_is_there() -> None:
    assert [room for room in (*ROOMS, *WITHOUT_WHAT) if not (CHECKOUT / room).exists()] == []


def test_sentences_are_found() -> None:
    text = """The first one (e.g. `a. b`).

It has a source: `module/zfs/zil.c`. "Quoted."  Is it?

    M = 1. And no sentence

- an item that
  goes on
- another
"""
    assert sentences_in(text) == [
        "The first one (e.g. CODE).",
        "It has a source: CODE.",
        '"Quoted.',
        "Is it?",
        "an item that goes on",
        "another",
    ]
    assert words_in("A CODE, that is - so 5") == 6


def test_docstrings_and_comments_are_found_wherever_they_are() -> None:
    source = '''"""The module's."""
X = "no docstring"  # behind code
# a comment
# of two lines
class C:
    """The class's.

    Its body.
    """
    field: int
    """The field's."""
'''
    assert sorted(docstrings_in(source)) == [
        "The class's.\n\nIts body.\n",
        "The field's.",
        "The module's.",
    ]
    assert list(comments_in(source)) == ["behind code", "a comment\nof two lines"]


def test_a_long_sentence_and_an_unwanted_word_are_complaints() -> None:
    long = " ".join(["word"] * (SENTENCE_WORDS_MAX + 1))
    short = long.removeprefix("word ")
    assert complaints(f"# {short}. {short}\n") == []
    assert complaints(f"# {long}\n") == [f"{SENTENCE_WORDS_MAX + 1} words: {long}"]
    assert complaints('"""Nobody was told."""\n') == ["'Nobody': Nobody was told."]
