"""Every answer of the page's first question as CSV: what a reader can pick, and what the page says."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
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

_COLUMNS = (*CONTROLS, "asked", "measured", "cuts", "harmed", "checked", "sentence", "advice")


def export_answers(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `answers.csv`: a line for each combination of choices."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(_COLUMNS)
    settings = settings_of(cell_figures(store.tallies()))
    alike = beside(settings)
    for setting in settings:
        rows.writerows(_rows(setting, advice_in_words(setting, alike[setting.family])))
    return (write_whole(folder / "answers.csv", text.getvalue().encode()),)


def _rows(setting: Setting, advice: str) -> Iterator[tuple[object, ...]]:
    for answer in setting.answers:
        figures = answer.figures
        sentence = lead_in_words(answer) + outcome_in_words(answer, is_safe=setting.is_safe)
        measured = ("", 0, 0, 0)
        if figures is not None:
            harm = figures.harm
            measured = (figures.cell, harm.trials, harm.events, figures.checked)
        asked = "" if answer.asked is None else answer.asked.name
        yield (*setting.key, event_in_words(answer), asked, *measured, sentence, advice)


EXPORT = ExportFormat(name="answers", write=export_answers)
