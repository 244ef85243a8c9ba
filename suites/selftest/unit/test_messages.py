"""Messages are in plain English: those of exceptions, help texts, hints, and reasons of verdicts.

The limits are those of docstrings. A value in a message counts as one word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from suites.selftest.unit.test_docstrings import (
    SENTENCE_WORDS_MAX,
    UNWANTED,
    is_python,
    sentences_in,
    words_in,
)
from torture.checkout import CHECKOUT

ROOMS = (
    "fixtures",
    "suites/benchmarks",
    "suites/knownbugs",
    "suites/powercut",
    "suites/sensitivity",
    "tools",
    "torture",
    "vmimages",
)
KEYWORDS = {"durable", "help", "hint", "otherwise", "words"}
"""Arguments that are text for a reader: `words` and `durable` stand on pages and in tables."""
REASONS = {"reasons", "found", "problems", "why", "why_not", "refused", "gone", "lack"}
"""Variables and arguments that hold a verdict's reasons, or the reason of a refusal."""
CALLS = {"unreadable", "UnreadableError", "print", "impossible"}
"""Functions whose text reaches a reader, although no `raise` stands before them."""
VALUE = "VALUE"


def files() -> list[Path]:
    found = [path for room in ROOMS for path in sorted((CHECKOUT / room).rglob("*"))]
    return [path for path in found if path.is_file() and is_python(path)]


def messages_in(source: str) -> Iterator[str]:
    """Every text of a message, with `VALUE` for each value in it."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Raise(exc=ast.Call() as call):
                yield from texts_in(call)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CALLS:
                yield from texts_in(node)
            case ast.keyword(arg=str(name), value=value) if name in KEYWORDS | REASONS:
                yield from texts_in(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in REASONS:
                yield from texts_in(value)
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name in REASONS:
                yield from texts_in(value)
            case ast.FunctionDef(name=name) if not name.endswith("script"):
                yield from texts_returned_by(node)


def texts_returned_by(function: ast.FunctionDef) -> Iterator[str]:
    """The texts with values in them that a function composes and returns."""
    for node in ast.walk(function):
        match node:
            case ast.Return(value=ast.JoinedStr() as value):
                yield from texts_in(value)


def texts_in(node: ast.AST) -> Iterator[str]:
    """The outermost strings of an expression."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else VALUE for part in parts
            )
        case _:
            for child in ast.iter_child_nodes(node):
                yield from texts_in(child)


def complaints(source: str) -> list[str]:
    """The messages of a module that break a rule."""
    found = []
    for text in messages_in(source):
        for sentence in sentences_in(text):
            if (count := words_in(sentence)) > SENTENCE_WORDS_MAX:
                found.append(f"{count} words: {sentence}")
            if unwanted := UNWANTED.search(sentence):
                found.append(f"'{unwanted[0]}': {sentence}")
    return sorted(set(found))


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_messages_are_plain(file: Path) -> None:
    assert complaints(file.read_text()) == []


def test_messages_are_found_wherever_they_are() -> None:
    source = """
raise HarnessError(f"no {what} in {place}", hint="read the log")
parser.add_argument("--cut", help="number of" " an event")
reasons = [f"file {seen.name} is gone" for seen in all_seen]
reasons += ["one more"]
print("wrote it")
text = "no message"
def why():
    return f"the device has {after} bytes"
def wait_script():
    return f"mountpoint {place}"
"""
    assert set(messages_in(source)) == {
        "no VALUE in VALUE",
        "read the log",
        "number of an event",
        "file VALUE is gone",
        "one more",
        "the device has VALUE bytes",
        "wrote it",
    }


def test_a_long_message_and_an_unwanted_word_are_complaints() -> None:
    long = " ".join(["word"] * SENTENCE_WORDS_MAX)
    assert complaints(f'raise ValueError(f"{{x}} {long}")') == [
        f"{SENTENCE_WORDS_MAX + 1} words: VALUE {long}"
    ]
    assert complaints(f'raise ValueError("{long}")') == []
    assert complaints('add("--x", help="Nobody was told.")') == ["'Nobody': Nobody was told."]
