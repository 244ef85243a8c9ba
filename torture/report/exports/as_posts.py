"""The answer of each set-up for people elsewhere: lines for a forum, and a page that a forum previews.

The variable `SITE_PAGE` has the address of the report's page, if it has one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urljoin

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from torture.files import write_whole
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.reading.store import Store
from torture.report.setups import CONTROLS
from torture.report.setups.answers import settings_of
from torture.report.setups.sentences import Said, all_said

_ADDRESS = "SITE_PAGE"
_TEMPLATES = Path(__file__).parents[1] / "page" / "templates"
_PICTURE = "../report.png"
"""Of the site, beside the folder of the report."""
_USUAL = ("noslog", "single")


def _said(store: Store) -> list[Said]:
    """Every setting without a SLOG that has cuts."""
    said = all_said(settings_of(cell_figures(store.tallies())))
    return [own for own in said if own.setting.key[3:] == _USUAL and own.setting.cuts]


def _state(said: Said) -> str:
    """Of the page, behind its address."""
    names = zip(CONTROLS, said.setting.key, strict=False)
    return "#" + "&".join(f"{name}={own}" for name, own in names)


def _head(said: Said) -> str:
    own = said.setting
    return f"{own.setup.title}, on {own.on.words}, {own.sync.words}, no SLOG"


def _versions(store: Store) -> str:
    return f"OpenZFS {', '.join(store.zfs_versions) or '?'}"


def export_forum(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `forum.md`: a part of ten lines for each set-up, NAS and `sync`."""
    page = os.environ.get(_ADDRESS, "report.html")
    parts = [
        "\n".join(
            [
                f"**{_head(own)}** ({_versions(store)})",
                *(f"- {line.event}: {line.sentence}" for line in own.answers),
                f"- what to set: {own.advice}",
                f"- [measured]({page}{_state(own)})",
            ]
        )
        for own in _said(store)
    ]
    text = "\n\n".join([f"<!-- export schema {EXPORT_SCHEMA} -->", *parts]) + "\n"
    return (write_whole(folder / "forum.md", text.encode()),)


def export_setups(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `setup-NAME.html` for each set-up: its answers, and the words of a preview."""
    by_setup: dict[str, list[Said]] = {}
    for own in _said(store):
        by_setup.setdefault(own.setting.setup.name, []).append(own)
    return tuple(
        write_whole(folder / f"setup-{name}.html", _page(parts, _versions(store)).encode())
        for name, parts in by_setup.items()
    )


def _page(parts: Sequence[Said], versions: str) -> str:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    address = os.environ.get(_ADDRESS, "")
    picture = urljoin(address, _PICTURE) if "://" in address else ""
    return environment.get_template("setup.html.j2").render(
        parts=[(own, _state(own)) for own in parts],
        schema=EXPORT_SCHEMA,
        versions=versions,
        page=address or "report.html",
        picture=picture,
    )


EXPORTS = (
    ExportFormat(name="forum", write=export_forum),
    ExportFormat(name="setups", write=export_setups),
)
