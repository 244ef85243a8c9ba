"""The Pareto front: the cells beside which no other one is both as fast and as safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torture.report.figures.cell_figures import CellFigures
from torture.report.trade.speeds import CellSpeed

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
