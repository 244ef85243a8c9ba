"""Speed beside safety: the Pareto front, and all that the page shows of the trade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torture.features.speed.trade.beside_published import TableBeside, beside_published
from torture.features.speed.trade.measurements import measurements_of
from torture.features.speed.trade.prices import Price, prices_of
from torture.features.speed.trade.speeds import CellSpeed, speeds_of
from torture.report.figures.answer import Standing, standing_of
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.grid import axes_rank
from torture.report.figures.sensitivity import Sensitivity
from torture.report.figures.sentence import would_be_seen
from torture.report.figures.wording import cell_in_words, common_in_words, varying_axes
from torture.report.reading.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class TradeRow:
    """A job of a cell over a link, beside the losses of the cell."""

    words: str
    speed: CellSpeed
    figures: CellFigures | None
    """None without a cut."""
    remarks: tuple[str, ...]
    """Whether the cuts are too few, and the faults that they would have detected."""
    surveyed: str
    """The cell's surveys in words; empty without any."""
    is_on_front: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Trade:
    """The section: prices in sentences, the table, the fronts, and the published tables."""

    prices: tuple[Price, ...]
    rows: tuple[TradeRow, ...]
    fronts: tuple[Front, ...]
    published: tuple[TableBeside, ...]
    """All of them; empty where nothing was measured."""
    common: str
    """The choices that all measured cells have, in words."""
    without_speed: int
    """The cells with cuts, and without a measured speed."""


def trade_of(store: Store, cells: Sequence[CellFigures], sensitivity: Sensitivity) -> Trade:
    """The trade of a store's measurements; `cells` are in the axes' order."""
    measurements = measurements_of(store.lines)
    by_name = {figures.cell: figures for figures in cells if figures.trials}
    surveyed = {
        figures.cell: "; ".join(own.in_words for own in figures.surveys) for figures in cells
    }
    speeds = sorted(speeds_of(measurements), key=lambda speed: axes_rank(speed.measurement.axes))
    axes = [speed.measurement.axes for speed in speeds]
    varying = varying_axes(axes)
    fronts = fronts_of(speeds, by_name)
    on_front = {id(point.speed) for front in fronts for point in front.points if point.is_on_front}
    rows = []
    for speed in speeds:
        own = by_name.get(speed.measurement.cell)
        rows.append(
            TradeRow(
                words=cell_in_words(speed.measurement.axes, varying),
                speed=speed,
                figures=own,
                remarks=() if own is None else _remarks(own, sensitivity),
                surveyed=surveyed.get(speed.measurement.cell, ""),
                is_on_front=id(speed) in on_front,
            )
        )
    measured = {speed.measurement.cell for speed in speeds}
    return Trade(
        prices=tuple(prices_of(speeds, by_name)),
        rows=tuple(rows),
        fronts=tuple(fronts),
        published=tuple(beside_published(measurements)) if measurements else (),
        common=common_in_words(axes, varying),
        without_speed=len(by_name.keys() - measured),
    )


def _remarks(figures: CellFigures, sensitivity: Sensitivity) -> tuple[str, ...]:
    standing = standing_of(figures)
    few = (standing.value,) if standing in (Standing.TOO_FEW, Standing.UNKNOWN) else ()
    seen = "" if figures.harm.events else would_be_seen(figures, sensitivity)
    return (*few, *([seen] if seen else []))


POINTS_MIN = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A cell with a speed and with cuts."""

    speed: CellSpeed
    figures: CellFigures
    is_on_front: bool

    @property
    def lost_at_most(self) -> float:
        """The upper bound of its rate of cuts that lost or damaged data."""
        return self.figures.harm.high


@dataclass(frozen=True, kw_only=True, slots=True)
class Front:
    """The cells of one job over one link; the fastest first."""

    points: tuple[Point, ...]

    @property
    def first(self) -> CellSpeed:
        """Any of its speeds: all have its job and its link."""
        return self.points[0].speed


def fronts_of(speeds: Sequence[CellSpeed], cells: Mapping[str, CellFigures]) -> list[Front]:
    """The front of each job and link with several cells that have a speed and cuts."""
    groups: dict[object, list[tuple[CellSpeed, CellFigures]]] = {}
    for speed in speeds:
        figures = cells.get(speed.measurement.cell)
        if speed.is_of_model and figures is not None and figures.harm.trials:
            key = (speed.measurement.job, speed.measurement.link)
            groups.setdefault(key, []).append((speed, figures))
    return [_front(group) for group in groups.values() if len(group) >= POINTS_MIN]


def _front(group: Sequence[tuple[CellSpeed, CellFigures]]) -> Front:
    places = [(_slowness(speed), figures.harm.high) for speed, figures in group]
    points = [
        Point(
            speed=speed,
            figures=figures,
            is_on_front=not any(_is_better(other, place) for other in places),
        )
        for (speed, figures), place in zip(group, places, strict=True)
    ]
    points.sort(key=lambda point: (_slowness(point.speed), point.speed.measurement.cell))
    return Front(points=tuple(points))


def _slowness(speed: CellSpeed) -> float:
    """Less is better."""
    return speed.figure.value if speed.is_latency else -speed.figure.value


def _is_better(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether it is as good in both ways, and better in one."""
    return one != other and one[0] <= other[0] and one[1] <= other[1]
