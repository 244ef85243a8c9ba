"""The findings of docs/findings.md, for the page: each with its readers, its advice and its versions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

_DOCS = Path(__file__).parents[3] / "docs"
DOCUMENT, REPORTS = _DOCS / "findings.md", _DOCS / "reports"
_SECTION = re.compile(
    r"^## (?P<title>[^\n]+)\n\n- \*\*Who is affected:\*\* (?P<affected>(?:(?!\n\n).)+?)\n"
    r"- \*\*What to do:\*\* (?P<advice>(?:(?!\n\n).)+?)\n\n",
    re.MULTILINE | re.DOTALL,
)
_BOUND = re.compile(r"^\| affected (from|to) \| (.+) \|$", re.MULTILINE)
_FINDING = re.compile(r"findings\.md#([\w-]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One finding; its words have no Markdown."""

    title: str
    affected: str
    advice: str
    versions: str = ""
    """The first and the last affected ones, as its report has them; empty without a report."""


def findings_in(document: str, reports: Iterable[str] = ()) -> tuple[Finding, ...]:
    """The findings of a document that begin with these two lines, in its order.

    Each `report` is a page of docs/reports: a table names its findings and the affected versions.
    """
    versions: dict[str, str] = {}
    for report in reports:
        versions |= dict.fromkeys(_FINDING.findall(report), _versions_in(report))
    return tuple(_finding(match.groupdict(), versions) for match in _SECTION.finditer(document))


def known_findings() -> tuple[Finding, ...]:
    """Those of the checkout; none where the document is not there."""
    if not DOCUMENT.is_file():
        return ()
    reports = [file.read_text(encoding="utf-8") for file in sorted(REPORTS.glob("*.md"))]
    return findings_in(DOCUMENT.read_text(encoding="utf-8"), reports)


def _finding(words: Mapping[str, str], versions: Mapping[str, str]) -> Finding:
    found = Finding(**{name: _plain(text) for name, text in words.items()})
    anchor = re.sub(r"[^\w -]", "", words["title"].lower()).replace(" ", "-")
    return replace(found, versions=versions.get(anchor, ""))


def _versions_in(report: str) -> str:
    return _plain("; ".join(f"{bound}: {words}" for bound, words in _BOUND.findall(report)))


def _plain(text: str) -> str:
    without_links = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return " ".join(without_links.replace("`", "").replace("**", "").split())
