"""The price of a choice: how many times as long a cell takes as the cell that differs in it alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from torture.choices.matrix.cells import DEFAULTS
from torture.facts.axes.sync import Sync
from torture.facts.stats.rates import in_words
from torture.features.speed.trade.beside_published import TableBeside, beside_published
from torture.features.speed.trade.measurements import (
    CellSpeed,
    Ratio,
    estimate_in_words,
    job_in_words,
    link_in_words,
    measurements_of,
    mib_per_s_of,
    ms_of,
    ratio_between,
    speeds_of,
)
from torture.report.figures.answer import Standing, standing_of, would_be_seen
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.pairs import axes_rank, setting_of, unusual_choices
from torture.report.figures.sensitivity import Sensitivity
from torture.report.figures.wording import (
    cell_in_words,
    choice_in_words,
    common_in_words,
    varying_axes,
)
from torture.report.reading.store import Store

_DIFFERENCES = (("sync",), ("slog", "slog_class"))
"""The axes in which the cells of a pair may differ. A SLOG and its class are one choice of a buyer."""
_BY_SAFETY = (Sync.DISABLED, Sync.STANDARD, Sync.ALWAYS)
_SAFE_KIND = "plp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """The price of `subject` beside `other`, in words: every pattern that was measured of both.

    One pattern alone would mislead: a choice that costs nothing in one may cost tenfold in another.
    """

    subject: str
    """The name of the cell that is compared."""
    other: str
    settings: tuple[str, str]
    """The keys of both settings (`torture.report.figures.pairs.setting_of`)."""
    sentence: str
    losses: str
    """The rates of both cells' cuts; empty where neither has any."""


def prices_of(speeds: Sequence[CellSpeed], cells: Mapping[str, CellFigures]) -> list[Price]:
    """A price for every two cells with the same link that differ in sync alone, or in the SLOG.

    Figures that are the emulator's have none. `cells` has the cells with cuts.
    """
    return [
        _price(axes, pair, cells)
        for axes in _DIFFERENCES
        for pair in _pairs([speed for speed in speeds if speed.is_of_model], axes)
    ]


_Pair = list[tuple[CellSpeed, CellSpeed]]
"""The same job of the subject and of the other cell; the most expensive job first."""


def _pairs(speeds: Sequence[CellSpeed], axes: Sequence[str]) -> Iterator[_Pair]:
    alike: dict[object, dict[str, list[CellSpeed]]] = {}
    for speed in speeds:
        measurement = speed.measurement
        rest = frozenset(
            (axis, choice or DEFAULTS.get(axis, ""))
            for axis, choice in measurement.axes.items()
            if axis not in axes
        )
        cells = alike.setdefault((measurement.link, rest), {})
        cells.setdefault(measurement.cell, []).append(speed)
    for cells in alike.values():
        for one, other in combinations(cells.values(), 2):
            jobs = {speed.measurement.job: speed for speed in other}
            pair = [
                (speed, jobs[speed.measurement.job])
                for speed in one
                if speed.measurement.job in jobs
            ]
            if pair:
                yield _with_subject_first(pair, axes)


def _with_subject_first(pair: _Pair, axes: Sequence[str]) -> _Pair:
    """The safer sync is the subject: its price is asked for. Of two SLOGs the one that costs more is."""
    turned = [(other, one) for one, other in pair]
    if "sync" in axes:
        is_turned = _by_safety(pair[0][1]) > _by_safety(pair[0][0])
    else:
        is_turned = max(map(_cost, turned)) > max(map(_cost, pair))
    return sorted(turned if is_turned else pair, key=_cost, reverse=True)


def _by_safety(speed: CellSpeed) -> int:
    known = [str(sync) for sync in _BY_SAFETY]
    sync = speed.measurement.axes.get("sync", "")
    return known.index(sync) if sync in known else -1


def _cost(job: tuple[CellSpeed, CellSpeed]) -> float:
    """How many times as slow the first one is."""
    ratio = job[0].figure.value / job[1].figure.value
    return ratio if job[0].is_latency else 1 / ratio


def _price(axes: Sequence[str], pair: _Pair, cells: Mapping[str, CellFigures]) -> Price:
    both = pair[0]
    names = [_differing_in_words(one.measurement.axes, axes) for one in both]
    ratios = [_ratio(subject, other) for subject, other in pair]
    beside = "does not measurably differ from" if all(map(_may_be_one, ratios)) else "beside"
    jobs = "; ".join(
        _job_in_words(subject, ratio) for (subject, _), ratio in zip(pair, ratios, strict=True)
    )
    sentence = f"{names[0]} {beside} {names[1]}, {_setting_in_words(both[0], axes)}: {jobs}"
    rates = [cells.get(one.measurement.cell) for one in both]
    has_cuts = any(figures is not None and figures.harm.trials for figures in rates)
    losses = [
        f"{name} {_loss_in_words(figures)}" for name, figures in zip(names, rates, strict=True)
    ]
    return Price(
        subject=both[0].measurement.cell,
        other=both[1].measurement.cell,
        settings=(setting_of(both[0].measurement.axes), setting_of(both[1].measurement.axes)),
        sentence=sentence[0].upper() + sentence[1:] if axes != ("sync",) else sentence,
        losses="; ".join(losses) if has_cuts else "",
    )


def _ratio(subject: CellSpeed, other: CellSpeed) -> Ratio:
    of = ms_of if subject.is_latency else mib_per_s_of
    return ratio_between(subject.measurement, other.measurement, of)


def _may_be_one(ratio: Ratio) -> bool:
    low, high = ratio.estimate.low, ratio.estimate.high
    return low is not None and high is not None and low <= 1 <= high


def _job_in_words(subject: CellSpeed, ratio: Ratio) -> str:
    """E.g. `synchronous writes of 4 KiB take 3.1 times (2.8 to 3.4) as long`."""
    times = estimate_in_words(ratio.estimate, "times")
    job = job_in_words(subject.measurement.job)
    words = f"{job} take {times} as long"
    if not subject.is_latency:
        words = f"{job} have {times} the throughput"
    if not ratio.rounds:
        return f"{words}, measured in different runs"
    if ratio.estimate.low is None:
        words += f", in {ratio.rounds} round" + ("" if ratio.rounds == 1 else "s")
    return words


def _differing_in_words(axes: Mapping[str, str], differing: Sequence[str]) -> str:
    if "sync" in differing:
        return choice_in_words(axes.get("sync", "?"))
    return slog_in_words(axes)


def slog_in_words(axes: Mapping[str, str]) -> str:
    """E.g. `no SLOG`, `a SLOG on a SAS SSD`, `a SLOG on NVMe (SLOG lies about flushes)`."""
    slog, own = axes.get("slog", ""), axes.get("slog_class", "")
    if not own:
        return choice_in_words(slog) if slog else "no SLOG"
    kind = "" if slog == _SAFE_KIND else f" ({choice_in_words(slog)})"
    return f"a {choice_in_words(own)}{kind}"


def _setting_in_words(speed: CellSpeed, differing: Sequence[str]) -> str:
    """All that both cells have, e.g. `with no SLOG, over iSCSI and 1 GbE, no filesystem`."""
    axes = speed.measurement.axes
    fixed = slog_in_words(axes) if "sync" in differing else choice_in_words(axes.get("sync", "?"))
    transport = choice_in_words(axes.get("transport", "?"))
    others = [
        choice_in_words(choice)
        for choice in unusual_choices({k: v for k, v in axes.items() if k != "slog_class"})
    ]
    if axes.get("nfs_export") not in (None, "", DEFAULTS["nfs_export"]):
        others.insert(0, choice_in_words(axes["nfs_export"]))
    if axes.get("filesystem"):
        others.insert(0, choice_in_words(axes["filesystem"]))
    over = f"with {fixed}, over {transport} and {link_in_words(speed.measurement.link)}"
    return ", ".join([over, *others])


def _loss_in_words(figures: CellFigures | None) -> str:
    if figures is None or not figures.harm.trials:
        return "has no cuts"
    return in_words(figures.harm)


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
