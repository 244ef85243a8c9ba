"""Comparisons of runs and of cells in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torture.facts.stats.rates import counts_in_words
from torture.report.figures.pairs import Pair, compare_cells, pair_in_words
from torture.report.figures.versus import compare_runs
from torture.report.figures.wording import difference_in_words

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
