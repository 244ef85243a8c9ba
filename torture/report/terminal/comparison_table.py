"""The table of a comparison, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from torture.facts.stats.rates import counts_in_words
from torture.report.figures.pairs import Pair
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
