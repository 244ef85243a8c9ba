"""The answer of each set-up for people elsewhere: lines for a forum, and a page that a forum previews.

The variable `SITE_PAGE` has the address of the report's page, if it has one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from torture.files import write_whole
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.cell_figures import cell_figures
from torture.report.reading.store import Store
from torture.report.setups import CONTROLS
from torture.report.setups.answers import Setting, beside, settings_of
from torture.report.setups.sentences import (
    advice_in_words,
    event_in_words,
    lead_in_words,
    outcome_in_words,
    remarks,
)

_ADDRESS = "SITE_PAGE"
_TEMPLATES = Path(__file__).parents[1] / "page" / "templates"
_PICTURE = "../report.png"
"""Of the site, beside the folder of the report."""
_USUAL = ("noslog", "single")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Said:
    """The words about one setting without a SLOG."""

    setting: Setting
    head: str
    lines: tuple[str, ...]
    """Of each event."""
    advice: str
    state: str
    """Behind the page's address."""
    remarks: tuple[str, ...]


def _said_of(setting: Setting, alike: Mapping[tuple[str, str], Setting]) -> _Said:
    names = zip(CONTROLS, setting.key, strict=False)
    return _Said(
        setting=setting,
        head=f"{setting.setup.title}, on {setting.on.words}, {setting.sync.words}, no SLOG",
        lines=tuple(
            f"{event_in_words(own)}: {lead_in_words(own)}"
            f"{outcome_in_words(own, is_safe=setting.is_safe)}"
            for own in setting.answers
        ),
        advice=advice_in_words(setting, alike),
        state="#" + "&".join(f"{name}={own}" for name, own in names),
        remarks=remarks(setting),
    )


def _said(store: Store) -> list[_Said]:
    settings = settings_of(cell_figures(store.tallies()))
    alike = beside(settings)
    usual = [own for own in settings if own.key[3:] == _USUAL and own.cuts]
    return [_said_of(own, alike[own.family]) for own in usual]


def _versions(store: Store) -> str:
    return f"OpenZFS {', '.join(store.zfs_versions) or '?'}"


def export_forum(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `forum.md`: a part of ten lines for each set-up, NAS and `sync`."""
    page = os.environ.get(_ADDRESS, "report.html")
    parts = [
        "\n".join(
            [
                f"**{own.head}** ({_versions(store)})",
                *(f"- {line}" for line in own.lines),
                f"- what to set: {own.advice}",
                f"- [measured]({page}{own.state})",
            ]
        )
        for own in _said(store)
    ]
    return (write_whole(folder / "forum.md", "\n\n".join(parts).encode() + b"\n"),)


def export_setups(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `setup-NAME.html` for each set-up: its answers, and the words of a preview."""
    by_setup: dict[str, list[_Said]] = {}
    for own in _said(store):
        by_setup.setdefault(own.setting.setup.name, []).append(own)
    return tuple(
        write_whole(folder / f"setup-{name}.html", _page(parts, _versions(store)).encode())
        for name, parts in by_setup.items()
    )


def _page(parts: Sequence[_Said], versions: str) -> str:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    address = os.environ.get(_ADDRESS, "")
    picture = urljoin(address, _PICTURE) if "://" in address else ""
    return environment.get_template("setup.html.j2").render(
        parts=parts, versions=versions, page=address or "report.html", picture=picture
    )


EXPORTS = (
    ExportFormat(name="forum", write=export_forum),
    ExportFormat(name="setups", write=export_setups),
)
