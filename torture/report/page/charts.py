"""The page's pictures: Vega-Lite draws them as SVG in the page's own colours, light or dark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import vl_convert

from torture.oracles.verdict.verdicts import Verdict
from torture.report.figures.answer import tone_of
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.wording import duration_in_words
from torture.report.reading.query_rows import RollbackBin
from torture.report.trade.fronts import Front


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """The width of a picture, and the part of it for the names of rows."""

    width_px: int
    names_px: int
    spare_px: int
    """Spare space at the left: a reader's font may be wider than the measured one."""


WIDE = Frame(width_px=900, names_px=430, spare_px=70)
PHONE = Frame(width_px=400, names_px=215, spare_px=36)

_ROW_PX = 22

_CONFIG: dict[str, Any] = {
    "aria": False,  # the whole picture has a label, and the list below has every figure
    "background": "transparent",
    "font": "Arial, Liberation Sans, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domainColor": "currentColor",
        "tickColor": "currentColor",
        "gridColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 0,
    },
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "labelFontSize": 12,
        "orient": "top",
        "title": None,
        "symbolType": "square",
    },
}

_TEXT = {"type": "text", "fontSize": 11}
_TONES = {"safe": "intact", "unknown": "inconclusive", "back": "rolled-back", "loses": "corrupted"}
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
    colours = _colours({str(verdict): str(verdict) for verdict in seen})
    bars = _layer(
        {"type": "bar"},
        x=_number("share", title="share of trials", axis=_percent_axis(frame)),
        color=_name("verdict", scale=colours, legend={"columns": 4 if frame is WIDE else 3}),
        order=_number("order"),
    )
    counts = _layer(
        _TEXT, x=_number("middle"), text=_number("count"), color={"value": "var(--on-colour)"}
    )
    chart = _chart(rows, [bars, counts], y=_rows_of(names.values())) | _size(frame, rows=len(cells))
    return _svg(chart, frame, "verdicts of each configuration")


def phases_of_cuts(phases: Sequence[tuple[str, int]], frame: Frame) -> str:
    """A bar per phase of ZFS's write path: how many of the cuts fell there."""
    total = sum(count for _, count in phases)
    named = [(phase.replace("-", " "), count) for phase, count in phases]
    rows = [{"name": name, "count": count, "share": count / total} for name, count in named]
    shares = _number("share", title="share of cuts", axis=_percent_axis(frame))
    bars = _layer({"type": "bar", "color": "var(--link)"})
    counts = _layer(_TEXT | {"align": "left", "dx": 3}, text=_number("count"))
    names = _rows_of(name for name, _ in named)
    chart = _chart(rows, [bars, counts], x=shares, y=names) | _size(frame, rows=len(rows))
    return _svg(chart, frame, "where the cuts fell")


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
    speed = _number(
        "speed",
        title=f"operations acknowledged as durable, per second of {seconds}"
        if frame is WIDE
        else "acknowledged operations per second",
        scale={"zero": False, "nice": True, "padding": 16},
        axis={"tickCount": 6},
    )
    spans = _layer(
        {"type": "rule", "strokeWidth": 2, "opacity": 0.45},
        y=_number("low", title="cuts that lost something", axis=_percent_axis(frame)),
        y2={"field": "high"},
    )
    points = _layer({"type": "circle", "size": 330, "opacity": 1}, y=_number("loss"))
    labels = _layer(
        _TEXT, y=_number("loss"), text=_number("number"), color={"value": "var(--on-colour)"}
    )
    tones = _name("tone", scale=_colours(_TONES), legend=None)
    chart = _chart(rows, [spans, points, labels], x=speed, color=tones)
    chart |= {"width": frame.width_px - 80, "height": 320}
    return _svg(chart, replace(frame, spare_px=4), "speed against loss")


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
    speed_at = _number("speed", title=title, scale=scale, axis={"grid": False, "tickCount": 6})
    bound = _number("high", title="cuts that lose, at most", axis=_percent_axis(frame))
    tones = _name("tone", scale=_colours(_TONES), legend=None)
    line = _layer(
        # a slower cell lowers the bound from its own speed on
        {"type": "line", "interpolate": "step-after" if is_latency else "step-before",
         "strokeDash": [4, 3]},
        x=speed_at, y=_number("front"), color={"value": "currentColor"},
    )  # fmt: skip
    losses = _layer(
        {"type": "rule", "opacity": 0.5},
        x=speed_at, y=_number("low"), y2={"field": "high"}, color=tones,
    )  # fmt: skip
    speeds = _layer(
        {"type": "rule", "opacity": 0.5},
        x=_number("fast", scale=scale), x2={"field": "slow"}, y=bound, color=tones,
    )  # fmt: skip
    points = _layer({"type": "circle", "size": 90, "opacity": 1}, x=speed_at, y=bound, color=tones)
    abreast = sorted(rows, key=lambda row: (round(row["high"], 1), row["speed"]))
    # neighbours have their numbers above and below: else 1 and 9 side by side read as 19
    labels = [
        _layer(
            _TEXT | {"dx": 9, "dy": dy}, x=speed_at, y=bound, text=_number("number"),
            color={"value": "currentColor"},
        ) | {"data": {"values": abreast[side::2]}}
        for side, dy in enumerate((-8, 12))
    ]  # fmt: skip
    chart = _chart(rows, [losses, speeds, points, *labels])
    fronted = [row for row in rows if row["front"] is not None]
    chart["layer"].insert(0, line | {"data": {"values": fronted}})
    chart |= {"width": frame.width_px - 80, "height": 300}
    return _svg(chart, replace(frame, spare_px=4), "measured speed against loss")


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
    boxes = _layer(
        {"type": "rect", "cornerRadius": 2},
        x=_number(
            "low",
            scale={"type": "log", "domain": [least_ms, most_ms], "nice": False},
            title="acknowledged time that is gone",
            axis={"values": ticks, "labelExpr": worded, "grid": True},
        ),
        x2={"field": "high"},
        color={"value": "var(--rolled-back)"},
        opacity=_number("weight", scale=None),
    )
    counts = _layer(
        _TEXT, x=_number("middle"), text=_number("trials"), color={"value": "currentColor"}
    )
    height = _size(frame, rows=len({rollback.cell for rollback in bins}))
    chart = _chart(rows, [boxes, counts], y=_rows_of(dict.fromkeys(named.values()))) | height
    return _svg(chart, frame, "how far each configuration went back")


def _chart(
    rows: list[dict[str, Any]], layers: list[dict[str, Any]], **encoding: Any
) -> dict[str, Any]:
    """A chart in the words of Vega-Lite; all layers share these channels."""
    return {"data": {"values": rows}, "encoding": encoding, "layer": layers}


def _layer(mark: dict[str, Any], **encoding: Any) -> dict[str, Any]:
    return {"mark": mark, "encoding": encoding}


def _number(field: str, **said: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative"} | said


def _name(field: str, **said: Any) -> dict[str, Any]:
    return {"field": field, "type": "nominal"} | said


def _rows_of(names: Iterable[str]) -> dict[str, Any]:
    return _name("name", sort=list(names), title=None)


def _colours(named: Mapping[str, str]) -> dict[str, Any]:
    """A scale from words to the page's variables."""
    return {"domain": list(named), "range": [f"var(--{name})" for name in named.values()]}


def _percent_axis(frame: Frame) -> dict[str, Any]:
    return {"format": ".0%", "tickCount": 5 if frame is WIDE else 3}


def _size(frame: Frame, *, rows: int) -> dict[str, int]:
    return {"width": frame.width_px - frame.names_px, "height": max(rows, 1) * _ROW_PX}


_NAMELESS = re.compile(r' role="graphics-symbol" aria-roledescription="\w+ mark container"(?=>)')


def _svg(chart: dict[str, Any], frame: Frame, title: str) -> str:
    """The chart as an inline SVG that scales with the page; `title` is for screen readers."""
    padding = {"left": frame.spare_px, "right": 12, "top": 4, "bottom": 4}
    svg: str = vl_convert.vegalite_to_svg(chart | {"config": _CONFIG | {"padding": padding}})
    # a container without a name is read out as a picture without one; its marks have theirs
    svg = _NAMELESS.sub("", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
