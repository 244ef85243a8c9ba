"""The worth of each configuration: speed and outage, below the table of losses."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.wording import latency_in_words, speed_in_words

_CAPTION = (
    "Medians over conclusive trials; guests are emulated: only ratios mean anything. Durable: operations "
    "per second of the writers' own work before the cut. Outage: from the cut to the volume's return. "
    "Reconnect: from there to the client's next acknowledgement."
)


def worth_table(cells: Sequence[CellFigures]) -> Table | None:
    """A row per cell; None if no trial has a measurement."""
    rows = {figures.cell: figures.worth for figures in cells if figures.worth.is_known}
    if not rows:
        return None
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        caption=_CAPTION,
        caption_justify="left",
    )
    table.add_column("cell", overflow="fold")
    for title in ("durable\n/s", "sync\np50", "sync\np99", "outage\n", "recon-\nnect"):
        table.add_column(title, justify="right", no_wrap=True)
    for cell, worth in rows.items():
        table.add_row(
            cell,
            speed_in_words(worth.durable_per_s),
            latency_in_words(worth.sync_p50_ms),
            latency_in_words(worth.sync_p99_ms),
            latency_in_words(worth.outage_ms),
            latency_in_words(worth.reconnect_ms),
        )
    return table


def outage_lines(cells: Sequence[CellFigures]) -> list[str]:
    """A line for each cell with operations acknowledged while there was no NAS."""
    return [
        f"{figures.cell}: acknowledged while there was no NAS: {figures.acknowledged_in_outage}"
        for figures in cells
        if figures.acknowledged_in_outage
    ]
