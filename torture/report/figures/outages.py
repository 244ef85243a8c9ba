"""The cells in which the NAS or its client ended otherwise than by a loss of power, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from torture.choices.matrix.cells import DEFAULTS
from torture.facts.axes.fate import Fate
from torture.facts.stats.rates import Rate, rate_of
from torture.oracles.verdict.guarantee import Verdict
from torture.report.figures.cell_figures import CellFigures

_AXES = ("patience", "away", "event", "early")
HEAD = ("cell", "theory", "lost or damaged", "went offline", "stood still", "brought back by")
"""The table's columns; the third is the rate of the cell's figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OutageCell:
    """A cell of an outage, or the same cell with a loss of power for some seconds."""

    figures: CellFigures
    offline: Rate
    """The cuts after which the client's disk was dead: `offline`, or something worse."""
    offline_s: float | None
    """The median time from the NAS's end until the disk was dead."""
    stood_still_s: tuple[float, float] | None
    """The median and the longest time from the cut to the next acknowledgement of a client that lived."""
    remedies: Mapping[str, int]

    @property
    def columns(self) -> tuple[str, ...]:
        """In words, without the first two columns; empty where nothing was seen."""
        offline = f"{self.offline.events} of {self.offline.trials}"
        if self.offline_s is not None:
            offline += f", after {self.offline_s:.0f} s"
        still = ""
        if self.stood_still_s is not None:
            still = "{:.0f} s, at most {:.0f} s".format(*self.stood_still_s)
        brought = ", ".join(f"{remedy} {count}" for remedy, count in self.remedies.items())
        return (offline, still, brought)


def outage_cells(
    sql: duckdb.DuckDBPyConnection, cells: Sequence[CellFigures]
) -> tuple[OutageCell, ...]:
    """In the order of the cells; none where no cell has an outage."""
    own = {figures.cell for figures in cells if _is_outage(figures.axes)}
    beside = {_usual(figures.axes) for figures in cells if figures.cell in own}
    chosen = [figures for figures in cells if figures.cell in own or _usual(figures.axes) in beside]
    counted = {row[0]: row[1:] for row in sql.execute(_QUERY).fetchall()}
    return tuple(_cell(figures, *counted[figures.cell]) for figures in chosen if figures.conclusive)


_QUERY = """
    SELECT cell, count(*), count(offline_ms), median(offline_ms) / 1000,
        median(outage_ms + reconnect_ms) / 1000, max(outage_ms + reconnect_ms) / 1000,
        list(remedy ORDER BY remedy) FILTER (coalesce(remedy, '') <> '')
    FROM live WHERE badness >= 0 AND NOT is_confirmation GROUP BY cell
"""


def _cell(
    figures: CellFigures,
    cuts: int,
    dead: int,
    offline_s: float | None,
    median_s: float | None,
    most_s: float | None,
    remedies: list[str] | None,
) -> OutageCell:
    known = remedies or []
    # a record from before `remedy` has the verdict alone
    offline = max(dead, figures.verdicts.get(Verdict.OFFLINE, 0))
    return OutageCell(
        figures=figures,
        offline=rate_of(offline, cuts),
        offline_s=offline_s,
        stood_still_s=None if median_s is None or most_s is None else (median_s, most_s),
        remedies={remedy: known.count(remedy) for remedy in dict.fromkeys(known)},
    )


def _is_outage(axes: Mapping[str, str]) -> bool:
    is_other = any(axes.get(axis, "") not in ("", DEFAULTS[axis]) for axis in _AXES)
    return is_other or axes.get("fate") == Fate.CLIENT_ONLY


def _usual(axes: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The cell without its outage, whatever its fate."""
    return tuple(sorted((axis, axes[axis]) for axis in axes if axis not in (*_AXES, "fate")))
