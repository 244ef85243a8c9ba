"""Prints comparisons of runs and of cells in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from torture.report.figures.beside import compare_cells, pair_in_words
from torture.report.figures.versus import compare_runs
from torture.report.terminal.comparison_table import comparison_table

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
