"""The page's pictures of the tables that sweep threads or sizes: a line for each set-up, or a bar."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torture.facts.speed.published import FigureKind
from torture.report.page.vega import (
    TEXT,
    Frame,
    as_svg,
    chart_of,
    layer_of,
    nominal,
    numeric,
    rows_of,
    size_of,
)
from torture.report.trade.beside_published import SweepDrawn
from torture.report.trade.speeds import digits

_UNITS = {FigureKind.PER_S: "operations per second"}
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
"""As many as a sweep has curves."""
_HEIGHT_PX = 280


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
