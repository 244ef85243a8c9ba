"""The findings of docs/findings.md, for the page: each with its readers and its advice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[3] / "docs" / "findings.md"
_SECTION = re.compile(
    r"^## (?P<title>[^\n]+)\n\n- \*\*Who is affected:\*\* (?P<affected>(?:(?!\n\n).)+?)\n"
    r"- \*\*What to do:\*\* (?P<advice>(?:(?!\n\n).)+?)\n\n",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One finding; its words have no Markdown."""

    title: str
    affected: str
    advice: str


def findings_in(document: str) -> tuple[Finding, ...]:
    """The findings of a document that begin with these two lines, in its order."""
    return tuple(
        Finding(**{name: _plain(text) for name, text in match.groupdict().items()})
        for match in _SECTION.finditer(document)
    )


def known_findings() -> tuple[Finding, ...]:
    """Those of the checkout; none where the document is not there."""
    return findings_in(DOCUMENT.read_text(encoding="utf-8")) if DOCUMENT.is_file() else ()


def _plain(text: str) -> str:
    without_links = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return " ".join(without_links.replace("`", "").replace("**", "").split())
