"""The answer of each set-up in a few lines of Markdown that one can paste into a forum."""

from __future__ import annotations

import os
from pathlib import Path

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
)

_PAGE = "report.html"
"""The page, where `SITE_PAGE` does not say another address."""
_USUAL = ("noslog", "single")


def export_forum(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `forum.md`: a part for each set-up and `sync`, without a SLOG."""
    settings = settings_of(cell_figures(store.tallies()))
    alike = beside(settings)
    versions = f"OpenZFS {', '.join(store.zfs_versions) or '?'}"
    parts = [
        _part(setting, advice_in_words(setting, alike[setting.family]), versions)
        for setting in settings
        if setting.key[3:] == _USUAL and setting.cuts
    ]
    return (write_whole(folder / "forum.md", "\n\n".join(parts).encode() + b"\n"),)


def _part(setting: Setting, advice: str, versions: str) -> str:
    link = "&".join(f"{name}={own}" for name, own in zip(CONTROLS, setting.key, strict=False))
    head = f"**{setting.setup.title}, on {setting.on.words}, {setting.sync.words}, no SLOG** ({versions})"
    lines = [
        f"- {event_in_words(own)}: {lead_in_words(own)}{outcome_in_words(own, is_safe=setting.is_safe)}"
        for own in setting.answers
    ]
    return "\n".join(
        [
            head,
            *lines,
            f"- what to set: {advice}",
            f"- [measured]({os.environ.get('SITE_PAGE', _PAGE)}#{link})",
        ]
    )


EXPORT = ExportFormat(name="forum", write=export_forum)
