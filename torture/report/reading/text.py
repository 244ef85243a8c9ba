"""Text from records and runs, which may hold anything, made fit to be printed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

_UNPRINTABLE = re.compile(
    "[\0-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
"""Controls, halves of surrogate pairs, what is no character of XML, and what turns or hides text."""

_NOT_PLAIN = re.compile(r"[^\w ,.;:()%/'\"+-]|_|:(?! )")
"""What could mean something in Markdown or HTML; a colon within a word makes a link, or an emoji."""


def shortened(text: str, most: int = 60) -> str:
    """Text on one line, and not too much of it."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def printable(text: str) -> str:
    """Text on one line, without what a terminal, XML or a reader's eye could trip over."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def escaped(text: str) -> str:
    """Text as Markdown that shows it, and nothing else, on one line, also in a table.

    A character given by its number is never syntax (CommonMark 0.31, section 2.5), also not of
    GitHub's links without brackets, once `www.` is broken up, too.
    """
    plain = _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", printable(text))
    plain = re.sub(r"(?i)\b(www)\.", r"\1&#46;", plain)
    # at the beginning of a line a list's mark or a number would be syntax
    return re.sub(r"^([+-]|\d+(?=[.)]))", lambda found: _as_numbers(found[0]), plain)


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[str] | int = 1
) -> list[str]:
    """The lines of a table; the columns of these names, or so many first ones, are not of numbers."""
    names = columns[:left] if isinstance(left, int) else left
    marks = ["---" if column in names else "---:" for column in columns]
    return [f"| {' | '.join(row)} |" for row in (columns, marks, *rows)]


def _as_numbers(text: str) -> str:
    return "".join(f"&#{ord(character)};" for character in text)
