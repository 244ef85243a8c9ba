"""The price of a choice: how many times as long a cell takes as the cell that differs in it alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from torture.choices.matrix.axes import DEFAULTS
from torture.facts.axes.sync import Sync
from torture.facts.stats.rates import in_words
from torture.features.speed.trade.speeds import (
    CellSpeed,
    Ratio,
    estimate_in_words,
    job_in_words,
    link_in_words,
    mib_per_s_of,
    ms_of,
    ratio_between,
)
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.grid import setting_of, unusual_choices
from torture.report.figures.wording import choice_in_words

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
    """The keys of both settings (`torture.report.figures.grid.setting_of`)."""
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
