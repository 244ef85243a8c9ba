"""What a report says in a terminal."""

from __future__ import annotations

from rich import box
from rich.markup import escape
from rich.table import Table

from torture.report.pairs import Pair
from torture.report.versus import Versus
from torture.report.wording import difference_in_words
from torture.stats.rates import in_words

_ROWS_MAX = 60


def comparison_table(versus: Versus) -> Table:
    """Every rate that differs, the least likely to be chance first; the rest is in the caption."""
    differing = [pair for pair in versus.pairs if pair.comparison.difference]
    shown = differing[:_ROWS_MAX]
    left_out = len(differing) - len(shown)
    same = len(versus.pairs) - len(differing)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=f"{same} rates are the same" + (f", {left_out} more differ" if left_out else ""),
        caption_justify="left",
    )
    table.add_column("configuration", overflow="fold")
    table.add_column("rate of", overflow="fold")
    for title in ("old [95 %]", "new [95 %]", "difference [95 %]", "p (Holm)"):
        table.add_column(title, justify="right")
    for pair in shown:
        style = "bold red" if pair.is_worse else "green" if pair.is_better else None
        table.add_row(
            escape(_named(pair)),
            pair.what,
            *map(escape, (in_words(pair.first_rate), in_words(pair.second_rate))),
            escape(difference_in_words(pair.comparison)),
            f"{pair.corrected_p:.2g}",
            style=style,
        )
    return table


def _named(pair: Pair) -> str:
    first, second = pair.first.cell, pair.second.cell
    return first if first == second else f"{first} -> {second}"
