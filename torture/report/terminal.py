"""The table at the end of a run, or of a new judgement of one."""

from __future__ import annotations

import io
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torture.facts.stats.rates import counts_in_words, in_words
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RUN_FILE, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import rewrite_records
from torture.records.scoring.score import Rejudged
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.pairs import Pair, compare_cells, pair_in_words
from torture.report.figures.tables import Fallen
from torture.report.figures.versus import compare_runs
from torture.report.figures.wording import difference_in_words, unknown_in_words
from torture.report.reading.store import Store
from torture.report.reading.tally import survey_kinds

_SHAPES = ((True, 80), (True, 38), (False, 22), (False, 16))
"""The shapes of the table: wide or not, and the width of a cell's name.

A wide table has columns for guarantee and trials, and one line per row. The first shape that fits is
used. From 80 columns on no name is folded.
"""

_GUARANTEE_COLUMNS = 11


def outcome_table(rows: Sequence[CellFigures], *, width: int) -> Table:
    """A row per cell: its guarantee, trials, every verdict's count, and both rates with intervals.

    Where a feature surveyed a cell, a column has the number of units that lost something.

    Verdicts that did not occur have no column: the caption names them. Where `width` columns are too few,
    a row takes several lines and omits guarantee and trials; the rates contain the number of trials.
    """
    ruler = Console(file=io.StringIO(), width=sys.maxsize)
    for wide, name_columns in _SHAPES:
        table = _table(rows, wide=wide, name_columns=name_columns)
        if ruler.measure(table).maximum <= width:
            break
    return table


def _table(rows: Sequence[CellFigures], *, wide: bool, name_columns: int) -> Table:
    seen = [verdict for verdict in Verdict if any(row.verdicts.get(verdict) for row in rows)]
    unseen = ", ".join(verdict for verdict in Verdict if verdict not in seen)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1) if wide else (0, 1, 0, 0),
        caption=f"No trial was {unseen}." if seen and unseen else None,
        caption_justify="left",
    )
    table.add_column("cell", no_wrap=True)
    if wide:
        table.add_column("guarantee", no_wrap=True)
        table.add_column("trials", justify="right", no_wrap=True)
    for verdict in seen:
        table.add_column(verdict.replace("-", "\n"), justify="right", no_wrap=True)
    loss = "acknowledged\nloss [95 %]" if wide else "ack. loss\n[95 %]"
    table.add_column(loss, justify="right", no_wrap=True)
    table.add_column("corruption\n[95 %]", justify="right", no_wrap=True)
    surveyed = [kind for kind in survey_kinds() if any(row.survey_of(kind) for row in rows)]
    for kind in surveyed:
        table.add_column(kind.title.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        name = _folded(row.cell, name_columns)
        counts = [str(row.verdicts.get(verdict, 0) or "·") for verdict in seen]
        rates = [in_words(row.loss), in_words(row.corruption)]
        surveys = [row.survey_of(kind) for kind in surveyed]
        states = ["·" if own is None else f"{own.lost}/{own.units}" for own in surveys]
        if wide:
            guarantee = fill(row.guarantee, _GUARANTEE_COLUMNS)
            table.add_row(name, guarantee, str(row.trials), *counts, *rates, *states)
        else:
            folded = (rate.replace(" [", "\n[") for rate in rates)
            table.add_row(name, *counts, *folded, *states)
    return table


def _folded(cell: str, columns: int) -> str:
    """A cell's name in lines of at most so many columns, broken after dashes; longer parts stay whole."""
    *parts, last = cell.split("-")
    lines = [""]
    for part in [*(f"{part}-" for part in parts), last]:
        if len(lines[-1]) + len(part) > columns:
            lines.append("  ")
        lines[-1] += part
    return "\n".join(lines)


def outage_lines(cells: Sequence[CellFigures]) -> list[str]:
    """A line for each cell with operations acknowledged while there was no NAS."""
    return [
        f"{figures.cell}: acknowledged while there was no NAS: {figures.acknowledged_in_outage}"
        for figures in cells
        if figures.acknowledged_in_outage
    ]


def fallen_lines(fallen: Sequence[Fallen]) -> list[str]:
    """How many cuts had writes to lose, and their phases, the most frequent first; of none, nothing."""
    of = sum(own.cuts for own in fallen)
    shares = ", ".join(f"{own.phase} {own.cuts / of:.0%}" for own in fallen)
    risks = (
        f"{of} cuts: {sum(own.at_risk for own in fallen)} with something at risk, "
        f"{sum(own.unflushed for own in fallen)} with a write that no flush covered, "
        f"{sum(own.in_flight for own in fallen)} with one in flight, "
        f"{sum(own.empty for own in fallen)} empty"
    )
    return [risks, f"where the cuts fell: {shares}"] if fallen else []


def effort_line(records: Sequence[TrialRecord], *, elapsed_s: float) -> str:
    """The speed of the run and the time of each stage, e.g. `24 trials in 5.4 min, 267/h: check 30 %`.

    Stages are ordered from the longest to the shortest; without trials the line is empty.
    """
    spent_ms: Counter[str] = Counter()
    for record in records:
        spent_ms.update(record.timings)
    if not records or elapsed_s <= 0 or spent_ms.total() == 0:
        return ""
    shares = ", ".join(
        f"{stage} {ms / spent_ms.total():.0%}" for stage, ms in spent_ms.most_common()
    )
    per_hour = len(records) / elapsed_s * 3600
    return f"{len(records)} trials in {elapsed_s / 60:.1f} min, {per_hour:.0f}/h: {shares}"


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


_ROWS_MAX = 60


def comparison_table(pairs: Sequence[Pair], *, has_same: bool = False) -> Table:
    """Every rate that differs, the most significant first; the caption counts the rest.

    The intervals of the differences hold at once, so also that of the first row.

    `has_same`: also the rates that are equal, of which a comparison of two cells has few.
    """
    differing = [pair for pair in pairs if has_same or pair.comparison.difference]
    shown = differing[:_ROWS_MAX]
    left_out = len(differing) - len(shown)
    same = len(pairs) - len(differing)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=_caption(same=same, left_out=left_out),
        caption_justify="left",
    )
    table.add_column("lost or damaged", overflow="fold")
    for title in ("from\nto", "difference\n[95 %]", "p\n(family)"):
        table.add_column(title, justify="right", no_wrap=True)
    for pair in shown:
        style = "bold red" if pair.is_worse else "green" if pair.is_better else None
        table.add_row(
            escape(_named(pair)),
            escape(f"{counts_in_words(pair.first.harm)}\n{counts_in_words(pair.second.harm)}"),
            escape(difference_in_words(pair.comparison).replace(" [", "\n[")),
            f"{pair.corrected_p:.2g}",
            style=style,
        )
    return table


def _caption(*, same: int, left_out: int) -> str | None:
    are = "rate is" if same == 1 else "rates are"
    parts = [f"{same} {are} the same"] if same else []
    parts += [f"{left_out} more differ"] if left_out else []
    return ", ".join(parts) or None


def _named(pair: Pair) -> str:
    first, second = pair.first.cell, pair.second.cell
    return first if first == second else f"{first}\n{second}"


EXIT_WORSE, EXIT_NOT_COMPARED = 1, 3


def print_run_comparison(old: Path, new: Path, *, is_subset: bool = False) -> int:
    """Compare two runs and print the answer; returns the exit code.

    Raises `HarnessError` when one of the paths is no run, or has no readable record.
    """
    versus = compare_runs([old], [new], is_subset=is_subset)
    Console().print(comparison_table(versus.pairs))
    print(versus.sentence)
    for remark in versus.remarks:
        print(f"note: {remark}")
    if versus.has_failed:
        return EXIT_WORSE
    if not versus.pairs:
        print(f"  next: tools/report {new}, which shows its trials' outcomes", file=sys.stderr)
        return EXIT_NOT_COMPARED
    return 0


def print_cell_comparison(runs: Sequence[Path], first: str, second: str) -> int:
    """Compare two cells and print the answer and the notes; returns the exit code.

    Raises `HarnessError` for an unknown cell or run.
    """
    beside = compare_cells(runs, first, second)
    Console().print(comparison_table(beside.pairs, has_same=True))
    for pair in beside.pairs:
        print(pair_in_words(pair))
    for remark in beside.remarks:
        print(f"note: {remark}")
    if not beside.pairs:
        print("nothing to compare: one of the two has no conclusive trial", file=sys.stderr)
        return EXIT_NOT_COMPARED
    return 0
