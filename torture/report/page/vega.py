"""The parts that the page's pictures share: Vega-Lite draws them as SVG in the page's own colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vl_convert


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """The width of a picture, and the part of it for the names of rows."""

    width_px: int
    names_px: int
    spare_px: int
    """Spare space at the left: a reader's font may be wider than the measured one."""


TEMPLATES = Path(__file__).with_name("templates")
"""The page's own; its style has the colours of all pictures."""
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
        "labelLimit": 0,
        "orient": "top",
        "title": None,
        "symbolType": "square",
    },
}

TEXT = {"type": "text", "fontSize": 11}


def chart_of(
    rows: list[dict[str, Any]], layers: list[dict[str, Any]], **encoding: Any
) -> dict[str, Any]:
    """A chart in the words of Vega-Lite; all layers share these channels."""
    return {"data": {"values": rows}, "encoding": encoding, "layer": layers}


def layer_of(mark: dict[str, Any], **encoding: Any) -> dict[str, Any]:
    """A layer of marks with its own channels."""
    return {"mark": mark, "encoding": encoding}


def numeric(field: str, **said: Any) -> dict[str, Any]:
    """A channel of numbers."""
    return {"field": field, "type": "quantitative"} | said


def nominal(field: str, **said: Any) -> dict[str, Any]:
    """A channel of words."""
    return {"field": field, "type": "nominal"} | said


def rows_of(names: Iterable[str]) -> dict[str, Any]:
    """A channel with a row for each name, in this order."""
    return nominal("name", sort=list(names), title=None)


def colour_scale(named: Mapping[str, str]) -> dict[str, Any]:
    """A scale from words to the page's variables."""
    return {"domain": list(named), "range": [f"var(--{name})" for name in named.values()]}


def percent_axis(frame: Frame) -> dict[str, Any]:
    """An axis of shares."""
    return {"format": ".0%", "tickCount": 5 if frame is WIDE else 3}


def size_of(frame: Frame, *, rows: int) -> dict[str, int]:
    """The size of a picture of so many rows."""
    return {"width": frame.width_px - frame.names_px, "height": max(rows, 1) * _ROW_PX}


_NAMELESS = re.compile(r' role="graphics-symbol" aria-roledescription="\w+ mark container"(?=>)')


def as_svg(chart: dict[str, Any], frame: Frame, title: str) -> str:
    """The chart as an inline SVG that scales with the page; `title` is for screen readers."""
    padding = {"left": frame.spare_px, "right": 12, "top": 4, "bottom": 4}
    svg: str = vl_convert.vegalite_to_svg(chart | {"config": _CONFIG | {"padding": padding}})
    # a container without a name is read out as a picture without one; its marks have theirs
    svg = _NAMELESS.sub("", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
