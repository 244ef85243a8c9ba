"""Documents, docstrings, comments and messages are in plain English, in all files that git knows.

A reader may know English as a second language: short sentences, and a few words that they do without.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from torture.files import CHECKOUT

SENTENCE_WORDS_MAX = 25
UNWANTED = re.compile(r"\b(told|nobody)\b", re.IGNORECASE)
VAGUE = {"what", "whatever"}
"""No name has them, and no docstring begins with them: the noun itself is clearer."""

CODE = re.compile(r"`[^`]+`")
NO_SENTENCE = re.compile(r"^```.*?^```$|^[#|][^\n]*$", re.MULTILINE | re.DOTALL)
"""Blocks of code, headings and tables of a document."""
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
NEW_BLOCK = re.compile(r"\n\s*(?:[-*]|\d+\.)\s|\n\s*\n")
"""The beginning of an item of a list, or an empty line."""
END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<!\bvs\.)(?<=[.!?])[)\"'*]*\s+")
DISPLAYED = re.compile(r"^    .*$", re.MULTILINE)
"""A line of a docstring that is a formula or an example, and no sentence."""
RELEASE = re.compile(r"^## \d", re.MULTILINE)
"""The heading of a version of the changelog: it is out, and its text stays."""
EXPORTED = "<!-- export schema"

KEYWORDS = {"durable", "help", "hint", "otherwise", "words"}
"""Arguments that are text for a reader: `words` and `durable` stand on pages and in tables."""
REASONS = {"reasons", "found", "problems", "why", "why_not", "refused", "gone", "lack"}
"""Variables and arguments that hold a verdict's reasons, or the reason of a refusal."""
CALLS = {"unreadable", "UnreadableError", "print", "impossible"}
"""Functions whose text reaches a reader, although no `raise` stands before them."""
WITH_MESSAGES = ("fixtures/", "suites/", "tools/", "torture/", "vmimages/")
OF_GUESTS = "vmimages/"
"""Only their messages are read: another comment there is another image."""


def files() -> list[Path]:
    """All that people wrote; a file that git does not know yet is one of them, too."""
    git = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(git, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    paths = [CHECKOUT / path for path in sorted(set(listed.stdout.splitlines()))]
    return [path for path in paths if path.is_file()]


def hand_written_documents() -> tuple[str, ...]:
    """The paths of every Markdown file that no export made."""
    markdown = [path for path in files() if path.suffix == ".md"]
    written = [path for path in markdown if not path.read_text().startswith(EXPORTED)]
    return tuple(str(path.relative_to(CHECKOUT)) for path in written)


def sources() -> dict[str, str]:
    """The text of each Python file, by its path; a tool says in its first line that it is one."""
    python = [
        path
        for path in files()
        if path.suffix == ".py" or (not path.suffix and b"python" in path.read_bytes()[:40])
    ]
    return {str(path.relative_to(CHECKOUT)): path.read_text() for path in python}


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
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and isinstance(inner.value, ast.JoinedStr):
                        yield from texts_in(inner.value)


def texts_in(node: ast.AST) -> Iterator[str]:
    """The outermost strings of an expression."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in parts
            )
        case _:
            for child in ast.iter_child_nodes(node):
                yield from texts_in(child)


def sentences_in(text: str) -> list[str]:
    """The sentences of a text; a span of code is one word, and an item of a list begins a new one."""
    blocks = NEW_BLOCK.split("\n" + LINK.sub(r"\1", CODE.sub("CODE", text)))
    pieces = [piece for block in blocks for piece in END.split(" ".join(block.split()))]
    return [piece for piece in pieces if piece]


def words_in(sentence: str) -> int:
    """How many words; a sign that stands alone is none."""
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def complaints(texts: Iterable[str]) -> set[str]:
    """The sentences that break a rule."""
    found = set()
    for sentence in (one for text in texts for one in sentences_in(text)):
        if (count := words_in(sentence)) > SENTENCE_WORDS_MAX:
            found.add(f"{count} words: {sentence}")
        if unwanted := UNWANTED.search(sentence):
            found.add(f"'{unwanted[0]}': {sentence}")
    return found


def complaints_of_document(markdown: str) -> set[str]:
    """The same of a document, and the unwanted words in its headings and tables."""
    words = UNWANTED.findall(CODE.sub("", FENCED.sub("", markdown)))
    return complaints([NO_SENTENCE.sub("", markdown)]) | set(words)


def complaints_of_source(source: str) -> set[str]:
    """The same of a module's docstrings and comments, and its vague names and docstrings."""
    docstrings = [DISPLAYED.sub("", text) for text in docstrings_in(source)]
    defined = [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    vague = {name for name in defined if not VAGUE.isdisjoint(name.split("_"))}
    vague |= {one for text in docstrings for one in sentences_in(text) if one.startswith("What ")}
    return complaints([*docstrings, *comments_in(source)]) | vague


def test_documents_are_plain() -> None:
    found = {}
    for document in hand_written_documents():
        text = (CHECKOUT / document).read_text()
        if document == "CHANGELOG.md":
            text = RELEASE.split(text)[0]
        found[document] = complaints_of_document(text)
    assert {document: said for document, said in found.items() if said} == {}


def test_docstrings_comments_and_names_are_plain() -> None:
    read = {path: text for path, text in sources().items() if not path.startswith(OF_GUESTS)}
    found = {path: complaints_of_source(source) for path, source in read.items()}
    assert len(found) > 500
    assert {path: said for path, said in found.items() if said} == {}


def test_messages_are_plain() -> None:
    read = {path: text for path, text in sources().items() if path.startswith(WITH_MESSAGES)}
    found = {path: complaints(messages_in(source)) for path, source in read.items()}
    assert {path: said for path, said in found.items() if said} == {}


LONG = " ".join(["word"] * (SENTENCE_WORDS_MAX + 1))
SHORT = LONG.removeprefix("word ")


def test_a_breach_of_a_rule_is_a_complaint() -> None:
    too_long = {f"{SENTENCE_WORDS_MAX + 1} words: {LONG}"}
    assert complaints([f"{SHORT}. {SHORT}"]) == set()
    assert complaints_of_document(f"# {LONG}\n\n{LONG}\n") == too_long
    assert complaints_of_document("| Told `nobody` |\n") == {"Told"}
    assert complaints_of_source(f"# {LONG}\n") == too_long
    assert complaints_of_source('"""Nobody was told."""\n') == {"'Nobody': Nobody was told."}
    assert complaints(messages_in(f'raise ValueError(f"{{x}} {SHORT}")')) == {
        f"{SENTENCE_WORDS_MAX + 1} words: VALUE {SHORT}"
    }
    source = 'def test_it_does_what_it_says():\n    """A. What it says."""\nclass Whatnot: pass\n'
    assert complaints_of_source(source) == {"test_it_does_what_it_says", "What it says."}


def test_sentences_are_found() -> None:
    markdown = """# A heading. Of two

One `word. of` code, [a link](to/there.md) (e.g. `a. b`). OpenZFS 2.3.9 is
a version! (A third one.)  "Quoted."  Is it?

| a table | of words. |
- an item that
  goes on
1. another

```
a block. And so on
```
"""
    assert sentences_in(NO_SENTENCE.sub("", markdown)) == [
        "One CODE code, a link (e.g. CODE).",
        "OpenZFS 2.3.9 is a version!",
        "(A third one.",
        '"Quoted.',
        "Is it?",
        "an item that goes on",
        "another",
    ]
    assert words_in("in 8 of 10 [44-98 %] cuts - no more") == 8


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
    expected = ["The class's.\n\nIts body.\n", "The field's.", "The module's."]
    assert sorted(docstrings_in(source)) == expected
    assert list(comments_in(source)) == ["behind code", "a comment\nof two lines"]
    assert complaints_of_source(f'"""It is:\n\n    {LONG}\n"""\n') == set()


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
        "no VALUE in VALUE", "read the log", "number of an event", "file VALUE is gone", "one more",
        "the device has VALUE bytes", "wrote it",
    }  # fmt: skip
