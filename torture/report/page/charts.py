"""The page's pictures of cuts and of their verdicts, and of speed against loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torture.oracles.verdict.guarantee import Verdict
from torture.report.figures.answer import tone_of
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.tables import Fallen
from torture.report.figures.wording import duration_in_words
from torture.report.page.vega import (
    TEXT,
    WIDE,
    Frame,
    as_svg,
    chart_of,
    colour_scale,
    layer_of,
    nominal,
    numeric,
    percent_axis,
    rows_of,
    size_of,
)
from torture.report.reading.loading import RollbackBin

TONES = {"safe": "intact", "unknown": "inconclusive", "back": "rolled-back", "loses": "corrupted"}
"""Tones, and the page's variables with their colours."""

Named = Callable[[CellFigures], str]


def verdict_shares(cells: Sequence[CellFigures], named: Named, frame: Frame) -> str:
    """A bar per cell: the share of each verdict among its trials, with the counts in the bars."""
    seen = [
        verdict for verdict in Verdict if any(figures.verdicts.get(verdict) for figures in cells)
    ]
    names = {figures.cell: named(figures) for figures in cells}
    rows = []
    for figures in cells:
        begun = 0
        for order, verdict in enumerate(seen):
            count = figures.verdicts.get(verdict, 0)
            if count:
                rows.append(
                    {
                        "name": names[figures.cell],
                        "verdict": str(verdict),
                        "order": order,
                        "count": count,
                        "share": count / figures.trials,
                        "middle": (begun + count / 2) / figures.trials,
                    }
                )
            begun += count
    colours = colour_scale({str(verdict): str(verdict) for verdict in seen})
    bars = layer_of(
        {"type": "bar"},
        x=numeric("share", title="share of trials", axis=percent_axis(frame)),
        color=nominal("verdict", scale=colours, legend={"columns": 4 if frame is WIDE else 3}),
        order=numeric("order"),
    )
    counts = layer_of(
        TEXT, x=numeric("middle"), text=numeric("count"), color={"value": "var(--on-colour)"}
    )
    chart = chart_of(rows, [bars, counts], y=rows_of(names.values())) | size_of(
        frame, rows=len(cells)
    )
    return as_svg(chart, frame, "verdicts of each configuration")


def phases_of_cuts(fallen: Sequence[Fallen], frame: Frame) -> str:
    """A bar per phase of ZFS's write path: how many of the cuts fell there."""
    total = sum(own.cuts for own in fallen)
    named = [(own.phase.replace("-", " "), own.cuts) for own in fallen]
    rows = [{"name": name, "count": count, "share": count / total} for name, count in named]
    shares = numeric("share", title="share of cuts", axis=percent_axis(frame))
    bars = layer_of({"type": "bar", "color": "var(--link)"})
    counts = layer_of(TEXT | {"align": "left", "dx": 3}, text=numeric("count"))
    names = rows_of(name for name, _ in named)
    chart = chart_of(rows, [bars, counts], x=shares, y=names) | size_of(frame, rows=len(rows))
    return as_svg(chart, frame, "where the cuts fell")


def speed_against_loss(cells: Sequence[CellFigures], numbers: dict[str, int], frame: Frame) -> str:
    """A point per cell: acknowledged operations per second against the rate of losses, with intervals.

    Points have the cells' numbers in the table. Cells of unknown speed have no point. A second is one of
    the writers' own work if all cells have it, otherwise one of the load.
    """
    rows = []
    is_of_work = all(cell.worth.durable_per_s for cell in cells if cell.acknowledged_per_s)
    for figures in cells:
        rate = figures.harm
        if figures.acknowledged_per_s and rate.trials:
            rows.append(
                {
                    "speed": figures.worth.durable_per_s
                    if is_of_work
                    else figures.acknowledged_per_s,
                    "loss": rate.share,
                    "low": rate.low,
                    "high": rate.high,
                    "tone": tone_of(figures),
                    "number": numbers[figures.cell],
                }
            )
    seconds = "the writers' work" if is_of_work else "load"
    speed = numeric(
        "speed",
        title=f"operations acknowledged as durable, per second of {seconds}"
        if frame is WIDE
        else "acknowledged operations per second",
        scale={"zero": False, "nice": True, "padding": 16},
        axis={"tickCount": 6},
    )
    spans = layer_of(
        {"type": "rule", "strokeWidth": 2, "opacity": 0.45},
        y=numeric("low", title="cuts that lost something", axis=percent_axis(frame)),
        y2={"field": "high"},
    )
    points = layer_of({"type": "circle", "size": 330, "opacity": 1}, y=numeric("loss"))
    labels = layer_of(
        TEXT, y=numeric("loss"), text=numeric("number"), color={"value": "var(--on-colour)"}
    )
    tones = nominal("tone", scale=colour_scale(TONES), legend=None)
    chart = chart_of(rows, [spans, points, labels], x=speed, color=tones)
    chart |= {"width": frame.width_px - 80, "height": 320}
    return as_svg(chart, replace(frame, spare_px=4), "speed against loss")


def rollback_times(bins: Sequence[RollbackBin], named: dict[str, str], frame: Frame) -> str:
    """A row per cell that rolled back: the times, darker where more trials rolled back so far."""
    most = max((rollback.trials for rollback in bins), default=1)
    # the first bin begins at 0, which has no logarithm
    lows_ms = [max(rollback.low_ms, rollback.high_ms / 10) for rollback in bins]
    rows = [
        {
            "name": named[rollback.cell], "low": low_ms, "high": rollback.high_ms,
            "trials": rollback.trials,
            "weight": 0.25 + 0.75 * rollback.trials / most, "middle": (low_ms * rollback.high_ms) ** 0.5,
        }
        for rollback, low_ms in zip(bins, lows_ms, strict=True)
    ]  # fmt: skip
    least_ms = min(lows_ms, default=1)
    most_ms = max((rollback.high_ms for rollback in bins), default=10)
    ticks = [
        tick for tick in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
        if least_ms <= tick <= most_ms
    ]  # fmt: skip
    names = {tick: duration_in_words(tick) for tick in ticks}
    worded = "".join(f"datum.value == {tick} ? '{name}' : " for tick, name in names.items()) + "''"
    boxes = layer_of(
        {"type": "rect", "cornerRadius": 2},
        x=numeric(
            "low",
            scale={"type": "log", "domain": [least_ms, most_ms], "nice": False},
            title="acknowledged time that is gone",
            axis={"values": ticks, "labelExpr": worded, "grid": True},
        ),
        x2={"field": "high"},
        color={"value": "var(--rolled-back)"},
        opacity=numeric("weight", scale=None),
    )
    counts = layer_of(
        TEXT, x=numeric("middle"), text=numeric("trials"), color={"value": "currentColor"}
    )
    height = size_of(frame, rows=len({rollback.cell for rollback in bins}))
    chart = chart_of(rows, [boxes, counts], y=rows_of(dict.fromkeys(named.values()))) | height
    return as_svg(chart, frame, "how far each configuration went back")
