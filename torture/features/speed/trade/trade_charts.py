"""The page's pictures of speed: fronts of cells, and tables that sweep threads or sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torture.features.speed.jobs.published import FigureKind
from torture.features.speed.trade.beside_published import SweepDrawn
from torture.features.speed.trade.measurements import digits
from torture.features.speed.trade.prices import Front
from torture.report.figures.answer import tone_of
from torture.report.page.charts import TONES
from torture.report.page.vega import (
    TEXT,
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

_UNITS = {FigureKind.PER_S: "operations per second"}
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
"""As many as a sweep has curves."""
_HEIGHT_PX = 280


def front_of_cells(front: Front, numbers: Mapping[str, int], frame: Frame) -> str:
    """A point per cell: its measured speed against the upper bound of its losses, and the front.

    Points have the cells' numbers in the table. The bars are intervals. The line bounds what any of
    these cells reaches: behind it another cell is faster and safer.
    """
    is_latency = front.first.is_latency
    rows: list[dict[str, Any]] = []
    for point in front.points:
        speed, rate = point.speed.figure, point.figures.harm
        rows.append(
            {
                "speed": speed.value,
                "fast": speed.low or speed.value, "slow": speed.high or speed.value,
                "low": rate.low, "high": rate.high,
                "tone": tone_of(point.figures), "number": numbers[point.figures.cell],
                "front": rate.high if point.is_on_front else None,
            }
        )  # fmt: skip
    title = "ms of an operation: further left is faster" if is_latency else "MiB/s"
    scale = {"type": "log", "nice": False, "padding": 24}
    speed_at = numeric("speed", title=title, scale=scale, axis={"grid": False, "tickCount": 6})
    bound = numeric("high", title="cuts that lose, at most", axis=percent_axis(frame))
    tones = nominal("tone", scale=colour_scale(TONES), legend=None)
    line = layer_of(
        # a slower cell lowers the bound from its own speed on
        {"type": "line", "interpolate": "step-after" if is_latency else "step-before",
         "strokeDash": [4, 3]},
        x=speed_at, y=numeric("front"), color={"value": "currentColor"},
    )  # fmt: skip
    losses = layer_of(
        {"type": "rule", "opacity": 0.5},
        x=speed_at, y=numeric("low"), y2={"field": "high"}, color=tones,
    )  # fmt: skip
    speeds = layer_of(
        {"type": "rule", "opacity": 0.5},
        x=numeric("fast", scale=scale), x2={"field": "slow"}, y=bound, color=tones,
    )  # fmt: skip
    points = layer_of(
        {"type": "circle", "size": 90, "opacity": 1}, x=speed_at, y=bound, color=tones
    )
    abreast = sorted(rows, key=lambda row: (round(row["high"], 1), row["speed"]))
    # neighbours have their numbers above and below: else 1 and 9 side by side read as 19
    labels = [
        layer_of(
            TEXT | {"dx": 9, "dy": dy}, x=speed_at, y=bound, text=numeric("number"),
            color={"value": "currentColor"},
        ) | {"data": {"values": abreast[side::2]}}
        for side, dy in enumerate((-8, 12))
    ]  # fmt: skip
    chart = chart_of(rows, [losses, speeds, points, *labels])
    fronted = [row for row in rows if row["front"] is not None]
    chart["layer"].insert(0, line | {"data": {"values": fronted}})
    chart |= {"width": frame.width_px - 80, "height": 300}
    return as_svg(chart, replace(frame, spare_px=4), "measured speed against loss")


def drawn_sweep(drawn: SweepDrawn, frame: Frame) -> str:
    """The picture, with the interval of each figure. Both axes of lines are logarithmic."""
    return (_bars if drawn.sweep.is_bars else _lines)(drawn, frame)


def _rows(drawn: SweepDrawn) -> list[dict[str, Any]]:
    return [
        {
            "name": words, "at": point.at, "value": point.figure.value,
            "low": point.figure.low or point.figure.value,
            "high": point.figure.high or point.figure.value,
            "said": digits(point.figure.value, 2),
        }
        for words, points in drawn.curves.items()
        for point in points
    ]  # fmt: skip


def _lines(drawn: SweepDrawn, frame: Frame) -> str:
    rows = _rows(drawn)
    places = sorted({row["at"] for row in rows})
    names = list(drawn.curves)
    x = numeric(
        "at",
        title=str(drawn.sweep.swept),
        scale={"type": "log", "nice": False, "padding": 16},
        axis={"values": places, "grid": False, "format": "~g"},
    )
    unit = _UNITS.get(drawn.sweep.kind, str(drawn.sweep.kind))
    y = numeric("value", title=unit, scale={"type": "log", "padding": 10}, axis={"tickCount": 4})
    # one column: a reader's font may be wider than the measured one
    shape = nominal(
        "name", legend={"columns": 1}, scale={"domain": names, "range": SHAPES[: len(names)]}
    )
    ink = {"color": {"value": "currentColor"}}
    lines = layer_of({"type": "line"}, x=x, y=y, detail=nominal("name"), **ink)
    spans = layer_of(
        {"type": "rule", "opacity": 0.5}, x=x, y=numeric("low"), y2={"field": "high"}, **ink
    )
    points = layer_of({"type": "point", "size": 60}, x=x, y=y, shape=shape, **ink)
    chart = chart_of(rows, [spans, lines, points])
    chart |= {"width": frame.width_px - 90, "height": _HEIGHT_PX}
    return as_svg(chart, replace(frame, spare_px=4), drawn.sweep.words)


def _bars(drawn: SweepDrawn, frame: Frame) -> str:
    rows = _rows(drawn)
    value = numeric(
        "value", title=_UNITS.get(drawn.sweep.kind, str(drawn.sweep.kind)), axis={"tickCount": 4}
    )
    bars = layer_of({"type": "bar", "color": "var(--link)"}, x=value)
    spans = layer_of(
        {"type": "rule", "strokeWidth": 2}, x=numeric("low"), x2={"field": "high"},
        color={"value": "currentColor"},
    )  # fmt: skip
    said = layer_of(TEXT | {"align": "left", "dx": 5}, x=numeric("high"), text=nominal("said"))
    chart = chart_of(rows, [bars, spans, said], y=rows_of(drawn.curves)) | size_of(
        frame, rows=len(rows)
    )
    return as_svg(chart, frame, drawn.sweep.words)
