"""The page's section of speed beside safety."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from torture.features.speed.trade.measurements import estimate_in_words, job_in_words, link_in_words
from torture.features.speed.trade.prices import Front, trade_of
from torture.features.speed.trade.trade_charts import drawn_sweep, front_of_cells
from torture.report.page.sections import Priced, Section, Shown
from torture.report.page.vega import PHONE, WIDE

_FRONTS_MAX = 8


def _values(shown: Shown) -> dict[str, Any]:
    trade = trade_of(shown.store, shown.cells, shown.sensitivity)
    fronts = [(front, _drawn(front, shown.numbers)) for front in trade.fronts[:_FRONTS_MAX]]
    return {"trade": trade, "fronts": fronts}


def _drawn(front: Front, numbers: Mapping[str, int]) -> tuple[Markup, Markup]:
    """A front for a wide page and for a phone."""
    wide, phone = (Markup(front_of_cells(front, numbers, frame)) for frame in (WIDE, PHONE))
    return wide, phone


SECTION = Section(
    folder=Path(__file__).with_name("templates"),
    template="speed.html.j2",
    values=_values,
    prices=lambda values: [Priced(one.settings, one.sentence) for one in values["trade"].prices],
    filters={
        "estimate": estimate_in_words,
        "job": job_in_words,
        "link": link_in_words,
        "sweep": lambda drawn: [Markup(drawn_sweep(drawn, frame)) for frame in (WIDE, PHONE)],
    },
)
