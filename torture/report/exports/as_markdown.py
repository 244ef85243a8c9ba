"""Markdown as GitHub and GitLab render it, for a job's summary: the answer, then a table."""

from __future__ import annotations

from pathlib import Path

from torture.files import write_whole
from torture.oracles.verdict.guarantee import Verdict
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.answer import NOT_INDEPENDENT, answer
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.outages import HEAD, outage_cells
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.figures.wording import rate_in_words
from torture.report.reading.store import Store
from torture.report.reading.tally import Survey, survey_kinds
from torture.report.reading.text import escaped, markdown_table

_RATES = {"lost or damaged": "harm", "acknowledged loss": "loss", "corruption": "corruption"}
"""The rates' columns; the page's own rate comes first."""


def export_markdown(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `report.md`."""
    cells = cell_figures(store.tallies())
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"],
        ["# Rates of each configuration"],
        [f"- **{group.sentence}**" for group in answer(cells)] or ["There are no trials."],
        _table(cells),
        _outages(store, cells),
        [f"- {escaped(note)}" for note in store.notes],
        [_legend(store, cells)],
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part) + "\n"
    return (write_whole(folder / "report.md", text.encode()),)


def _table(cells: tuple[CellFigures, ...]) -> list[str]:
    if not cells:
        return []
    seen = [
        verdict for verdict in Verdict if any(figures.verdicts.get(verdict) for figures in cells)
    ]
    titles = [kind.title for kind in survey_kinds()]
    head = ["cell", "guarantee", "broken", "trials", "checked", *titles, *seen, *_RATES]
    return markdown_table(head, [_cells(figures, seen) for figures in cells], left=2)


def _outages(store: Store, cells: tuple[CellFigures, ...]) -> list[str]:
    rows = [
        [
            escaped(cell.figures.cell),
            escaped(cell.figures.guarantee),
            rate_in_words(cell.figures.harm, cell.figures.unresolved),
            *cell.columns,
        ]
        for cell in outage_cells(store.sql, cells)
    ]
    return ["## Outages", "", *markdown_table(HEAD, rows, left=6)] if rows else []


def _cells(figures: CellFigures, seen: list[Verdict]) -> list[str]:
    return [
        escaped(figures.cell),
        escaped(figures.guarantee),
        f"**{broken}**" if (broken := figures.broken + figures.broken_surveys) else "0",
        str(figures.trials),
        f"{figures.checked:,}",
        *(_survey(figures.survey_of(kind)) for kind in survey_kinds()),
        *(str(figures.verdicts.get(verdict, 0)) for verdict in seen),
        *(rate_in_words(getattr(figures, name), figures.unresolved) for name in _RATES.values()),
    ]


def _survey(survey: Survey | None) -> str:
    return "" if survey is None else f"{survey.lost:,}/{survey.units:,}"


def _legend(store: Store, cells: tuple[CellFigures, ...]) -> str:
    runs = f"{len(store.runs)} runs" if len(store.runs) > 1 else "1 run"
    trials = " and ".join(["trials", *(kind.name for kind in survey_kinds())])
    legends = "".join(f"; {kind.legend}" for kind in survey_kinds())
    legend = (
        f"{store.trials:,} trials of {runs}. Rates are of conclusive trials, with their exact 95 % "
        f"intervals; checked: their acknowledged operations, each looked for after the cut; "
        f"broken: {trials} worse than the guarantee{legends}. "
        f"{NOT_INDEPENDENT}"
    )
    if any(figures.unresolved for figures in cells):
        legend += " After a rate: the same with inconclusive trials counted as safe, and as lost."
    if empty := sum(figures.empty for figures in cells):
        legend += f" {empty:,} of the inconclusive trials had nothing to lose (empty cuts)."
    if any(figures.harm.is_sequential for figures in cells):
        legend += " The intervals of cells that stopped at their answer allow for that, and say so."
    return legend


EXPORT = ExportFormat(name="markdown", write=export_markdown)
