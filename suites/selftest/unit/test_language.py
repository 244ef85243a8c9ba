"""The documents are in plain English: short sentences, and two words that they do without."""

from __future__ import annotations

import re

import pytest

from torture.checkout import CHECKOUT

DOCUMENTS = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "docs/audit.md",
    "docs/axes.md",
    "docs/debugging.md",
    "docs/errata.md",
    "docs/findings.md",
    "docs/fleet.md",
    "docs/notes.md",
    "docs/oracles.md",
    "docs/power-cut.md",
    "docs/reports/README.md",
    "docs/reports/btrfs-renamed-symlink.md",
    "docs/reports/netfs-writethrough.md",
    "docs/reports/nfsd-xattr.md",
    "docs/reports/nvme-multipath-flush.md",
    "docs/reports/raidz-expansion-backport.md",
    "docs/reports/zfs-fallocate-always.md",
    "docs/reports/zfs-replay-atime.md",
    "docs/reports/zpool-import-torn-label.md",
    "docs/reports/zvol-torn-sector.md",
    "docs/statistics.md",
    "docs/tasks.md",
    "docs/transports.md",
    "docs/workers.md",
    "results/README.md",
    "suites/selftest/recorded/README.md",
    "torture/machines/shelf/native/README.md",
    "vmimages/README.md",
)
SENTENCE_WORDS_MAX = 25
UNWANTED = re.compile(r"\b(told|nobody)\b", re.IGNORECASE)

BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
HEADING = re.compile(r"^#.*$", re.MULTILINE)
TABLE_ROW = re.compile(r"^\|.*$", re.MULTILINE)
NEW_BLOCK = re.compile(r"\n\s*(?:[-*]|\d+\.)\s|\n\s*\n")
"""The beginning of an item of a list, or an empty line."""
END = re.compile(r"(?<=[.!?])[)\"*]*\s+")


RELEASE = re.compile(r"^## \d", re.MULTILINE)
"""The heading of a version of the changelog: it is out, and its text stays."""


def text_of(document: str) -> str:
    """The text of a document; of the changelog only the part before the first release."""
    text = (CHECKOUT / document).read_text()
    return RELEASE.split(text)[0] if document == "CHANGELOG.md" else text


def prose_in(markdown: str) -> str:
    """The text without code and the targets of links; a span of code is one word."""
    return LINK.sub(r"\1", CODE.sub("CODE", BLOCK.sub("", markdown)))


def sentences_in(markdown: str) -> list[str]:
    """The sentences outside of headings and tables; an item of a list begins a new one."""
    text = TABLE_ROW.sub("", HEADING.sub("", prose_in(markdown)))
    pieces = [piece for block in NEW_BLOCK.split(f"\n{text}") for piece in END.split(block)]
    return [" ".join(piece.split()) for piece in pieces if piece.strip()]


def words_in(sentence: str) -> int:
    """How many words; a sign that stands alone is none."""
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_sentence_is_long(document: str) -> None:
    sentences = sentences_in(text_of(document))
    assert [text for text in sentences if words_in(text) > SENTENCE_WORDS_MAX] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_unwanted_word_occurs(document: str) -> None:
    assert UNWANTED.findall(prose_in(text_of(document))) == []


def test_sentences_are_found() -> None:
    markdown = """# A heading. Of two

One `word. of` code, [a link](to/there.md). OpenZFS 2.3.9 is
a version! (A third one.)

| a table | of words. |
- an item
- another

```
told nobody. And so on
```
"""
    assert sentences_in(markdown) == [
        "One CODE code, a link.",
        "OpenZFS 2.3.9 is a version!",
        "(A third one.)",
        "an item",
        "another",
    ]
    assert words_in("in 8 of 10 [44-98 %] cuts - no more") == 8
    assert UNWANTED.findall(prose_in("Told `told`, retold. Nobody")) == ["Told", "Nobody"]
