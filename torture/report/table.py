"""The table at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from torture.matrix.verdicts import Verdict
from torture.record.trials import TrialRecord
from torture.report.rates import Rate, summarise

WIDE_COLUMNS = 132
"""From this width on a row fits on one line."""


def outcome_table(records: Iterable[TrialRecord], *, width: int = WIDE_COLUMNS) -> Table:
    """A row a cell: its promise, trials, every verdict's count, and both rates with intervals.

    Verdicts that no trial had have no column: the caption names them. Below `WIDE_COLUMNS` a row
    takes two lines, without promise and trials: the rates say of how many.
    """
    wide = width >= WIDE_COLUMNS
    rows = summarise(records)
    seen = [verdict for verdict in Verdict if any(row.verdicts.get(verdict) for row in rows)]
    unseen = ", ".join(verdict for verdict in Verdict if verdict not in seen)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1) if wide else (0, 1, 0, 0),
        caption=f"No trial was {unseen}." if unseen else None,
        caption_justify="left",
    )
    table.add_column("cell", no_wrap=True)
    if wide:
        table.add_column("promise", no_wrap=True)
        table.add_column("trials", justify="right", no_wrap=True)
    for verdict in seen:
        table.add_column(verdict.replace("-", "\n"), justify="right", no_wrap=True)
    loss = "acknowledged\nloss [95 %]" if wide else "ack. loss\n[95 %]"
    table.add_column(loss, justify="right", no_wrap=True)
    table.add_column("corruption\n[95 %]", justify="right", no_wrap=True)
    for row in rows:
        counts = [str(row.verdicts.get(verdict, 0) or "·") for verdict in seen]
        rates = [in_words(row.loss), in_words(row.corruption)]
        if wide:
            table.add_row(row.cell, row.promise, str(row.trials), *counts, *rates)
        else:
            nas, filesystem, fate = row.cell.rsplit("-", 2)
            name = f"{nas}-\n  {filesystem}-{fate}"
            table.add_row(name, *counts, *(rate.replace(" [", "\n[") for rate in rates))
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


def effort_line(records: Sequence[TrialRecord], *, elapsed_s: float) -> str:
    """How fast it went and where a trial's time went, e.g. `24 trials in 5.4 min, 267/h: check 30 %`.

    Stages are named from the longest to the shortest; without trials the line is empty.
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
