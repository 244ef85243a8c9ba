"""The report of some runs: the page, and the requested exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.files import write_whole
from torture.records.record.run_document import RunLayout
from torture.report.exports import EXPORTS
from torture.report.figures.answer import answer
from torture.report.figures.cell_figures import cell_figures
from torture.report.page.render import render_page
from torture.report.reading.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltReport:
    """The written files, and the notes on the records."""

    page: Path
    exports: tuple[Path, ...]
    notes: tuple[str, ...]
    answer: tuple[str, ...]
    """A sentence for each group of configurations."""


def build_report(runs: Sequence[Path], *, output: Path, formats: Sequence[str] = ()) -> BuiltReport:
    """Write the page and the exports of these runs, merged, into a folder; each file atomically.

    Raises `HarnessError` when a path is no run, `OSError` when there is no room.
    """
    output.mkdir(parents=True, exist_ok=True)
    with Store.open(runs) as store:
        page = write_whole(RunLayout(folder=output).page, render_page(store).encode())
        sentences = tuple(group.sentence for group in answer(cell_figures(store.tallies())))
        exports = [path for form in formats for path in EXPORTS[form].write(store, output)]
        return BuiltReport(page=page, exports=tuple(exports), notes=store.notes, answer=sentences)
