"""Runs and cells compared, said in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from torture.report.figures.versus import compare_cells, compare_runs, in_a_sentence
from torture.report.terminal.comparison_table import comparison_table

EXIT_WORSE, EXIT_NOT_COMPARED = 1, 3


def say_runs(old: Path, new: Path) -> int:
    """Compare two runs and print the answer; returns the exit code that goes with it.

    Raises `HarnessError` when one of the paths is no run.
    """
    versus = compare_runs([old], [new])
    Console().print(comparison_table(versus.pairs))
    print(versus.sentence)
    for remark in versus.remarks:
        print(f"note: {remark}")
    if not versus.pairs:
        print(f"  next: tools/report {new}, which says what its trials came to", file=sys.stderr)
        return EXIT_NOT_COMPARED
    return EXIT_WORSE if versus.has_failed else 0


def say_cells(runs: Sequence[Path], first: str, second: str) -> int:
    """Compare two cells and print the answer, and what it leaves out; returns the exit code.

    Raises `HarnessError` when there is no such cell or run.
    """
    beside = compare_cells(runs, first, second)
    Console().print(comparison_table(beside.pairs, has_same=True))
    for pair in beside.pairs:
        print(in_a_sentence(pair))
    for remark in beside.remarks:
        print(f"note: {remark}")
    if not beside.pairs:
        print("nothing to compare: one of the two has no conclusive trial", file=sys.stderr)
        return EXIT_NOT_COMPARED
    return 0
