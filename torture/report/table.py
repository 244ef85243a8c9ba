"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table

from torture.matrix.verdicts import Verdict
from torture.record.trials import TrialRecord
from torture.report.rates import Rate, summarise

_SCORED = tuple(verdict for verdict in Verdict if verdict is not Verdict.INCONCLUSIVE)


def outcome_table(records: Iterable[TrialRecord]) -> Table:
    """A row a cell: its promise, trials, every verdict's count, and both rates with intervals."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    table.add_column("cell", no_wrap=True)
    table.add_column("promise", no_wrap=True)
    table.add_column("trials", justify="right")
    for verdict in _SCORED:
        table.add_column(verdict.replace("-", "\n", 1), justify="right")
    table.add_column("incon-\nclusive", justify="right")
    table.add_column("acknowledged loss\nrate [95 %]", justify="right", no_wrap=True)
    table.add_column("corruption\nrate [95 %]", justify="right", no_wrap=True)
    for row in summarise(records):
        counts = [str(row.verdicts.get(verdict, 0) or "·") for verdict in _SCORED]
        table.add_row(
            row.cell,
            row.promise,
            str(row.trials),
            *counts,
            str(row.inconclusive or "·"),
            in_words(row.loss),
            in_words(row.corruption),
        )
    return table


def in_words(rate: Rate) -> str:
    """E.g. `3/20 15 % [3.2-38 %]`; a dash where nothing was conclusive."""
    if rate.trials == 0:
        return "-"
    share = f"{rate.events}/{rate.trials} {_percent(rate.share)} %"
    return f"{share} [{_percent(rate.low)}-{_percent(rate.high)} %]"


def _percent(share: float) -> str:
    value = share * 100
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"
