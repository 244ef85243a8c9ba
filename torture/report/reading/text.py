"""Makes text from records and runs, which may be hostile, fit to be printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence

_UNPRINTABLE = re.compile(
    "[\0-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
"""Controls, lone surrogates, characters that XML forbids, and those that reverse or hide text."""

_NOT_PLAIN = re.compile(r"[^\w ,.;:()%/'\"+-]|_|:(?! )")
"""Characters with a meaning in Markdown or HTML; a colon within a word makes a link, or an emoji."""


def shortened(text: str, most: int = 60) -> str:
    """Text on one line, shortened to `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def printable(text: str) -> str:
    """Text on one line, without characters that confuse a terminal, XML or a reader."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def shell_word(text: str) -> str:
    """Text as one word for bash, on one line.

    Characters that a reader does not see are given by their bytes (bash(1), "QUOTING").
    """
    if not _UNPRINTABLE.search(text):
        return shlex.quote(text)
    plain = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _UNPRINTABLE.sub(lambda found: _as_bytes(found[0]), plain) + "'"


def escaped(text: str) -> str:
    """Text as Markdown that shows exactly this text, on one line, also in a table.

    A character given by its number is never syntax (CommonMark 0.31, section 2.5). With `www.` broken up,
    GitHub's links without brackets do not apply either.
    """
    plain = _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", printable(text))
    plain = re.sub(r"(?i)\b(www)\.", r"\1&#46;", plain)
    # a list's mark or a number would be syntax at the beginning of a line
    return re.sub(r"^([+-]|\d+(?=[.)]))", lambda found: _as_numbers(found[0]), plain)


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[str] | int = 1
) -> list[str]:
    """The lines of a table; the columns in `left`, or so many first ones, are left-aligned."""
    names = columns[:left] if isinstance(left, int) else left
    marks = ["---" if column in names else "---:" for column in columns]
    return [f"| {' | '.join(row)} |" for row in (columns, marks, *rows)]


def _as_bytes(character: str) -> str:
    # names of files hold undecodable bytes as lone surrogates; JSON may hold any other one
    is_byte = "\udc80" <= character <= "\udcff"
    how = "surrogateescape" if is_byte else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", how))


def _as_numbers(text: str) -> str:
    return "".join(f"&#{ord(character)};" for character in text)
