"""Prints the table of a run that was judged again."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from torture.records.record.run_layout import RUN_FILE, TRIALS_FILE
from torture.records.record.trials_file import rewrite_records
from torture.records.scoring.rejudge import Rejudged
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.wording import unknown_in_words
from torture.report.reading.store import Store
from torture.report.terminal.outcome_table import outcome_table


def print_rejudged(run: Path, rejudged: Rejudged) -> None:
    """Print the table as the page of a run with these records would count it, and the notes."""
    console = Console()
    with TemporaryDirectory() as scratch:
        now = Path(scratch) / run.resolve().name
        now.mkdir()
        for name in (RUN_FILE, TRIALS_FILE):
            if (run / name).exists():
                shutil.copyfile(run / name, now / name)
        rewrite_records(now / TRIALS_FILE, rejudged.records)
        with Store.open([now]) as store:
            cells = cell_figures(store.tallies())
            console.print(outcome_table(cells, width=console.width))
            for line in (*unknown_in_words(cells), *(f"note: {note}" for note in store.notes)):
                print(line)
