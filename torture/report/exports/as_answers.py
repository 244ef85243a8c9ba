"""Every answer of the page's first question as CSV: what a reader can pick, and what the page says."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from torture.files import write_whole
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.reading.store import Store
from torture.report.setups import CONTROLS
from torture.report.setups.answers import settings_of
from torture.report.setups.sentences import Said, all_said

_COLUMNS = (*CONTROLS, "asked", "measured", "cuts", "harmed", "checked", "sentence", "advice",
            "export_schema")  # fmt: skip


def export_answers(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `answers.csv`: a line for each combination of choices."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(_COLUMNS)
    for said in all_said(settings_of(cell_figures(store.tallies()))):
        rows.writerows(_rows(said))
    return (write_whole(folder / "answers.csv", text.getvalue().encode()),)


def _rows(said: Said) -> Iterator[tuple[object, ...]]:
    for own in said.answers:
        asked, figures = own.answer.asked, own.answer.figures
        measured = ("", 0, 0, 0)
        if figures is not None:
            harm = figures.harm
            measured = (figures.cell, harm.trials, harm.events, figures.checked)
        name = "" if asked is None else asked.name
        yield (
            *said.setting.key,
            own.event,
            name,
            *measured,
            own.sentence,
            said.advice,
            EXPORT_SCHEMA,
        )


EXPORT = ExportFormat(name="answers", write=export_answers)
