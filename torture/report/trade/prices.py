"""The price of a choice: how many times as long a cell takes as the cell that differs in it alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from torture.choices.matrix.axes import DEFAULTS
from torture.facts.axes.sync import Sync
from torture.facts.speed.ratios import Estimate
from torture.facts.stats.rates import in_words
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.grid import unusual_choices
from torture.report.figures.wording import choice_in_words
from torture.report.trade.speeds import (
    CellSpeed,
    estimate_in_words,
    job_in_words,
    link_in_words,
    mib_per_s_of,
    ms_of,
    ratio_between,
)

_DIFFERENCES = (("sync",), ("slog", "slog_class"))
"""The axes in which the cells of a pair may differ. A SLOG and its class are one choice of a buyer."""
_BY_SAFETY = (Sync.DISABLED, Sync.STANDARD, Sync.ALWAYS)
_SAFE_KIND = "plp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """The price of `subject` beside `other`, in words."""

    subject: str
    """The name of the cell that is compared."""
    other: str
    sentence: str
    losses: str
    """The rates of both cells' cuts."""


def prices_of(speeds: Sequence[CellSpeed], cells: Mapping[str, CellFigures]) -> list[Price]:
    """A price for every two cells with the same job and link that differ in sync alone, or in the SLOG.

    Figures that are the emulator's have none. `cells` has the cells with cuts.
    """
    return [
        _price(axes, *pair, cells)
        for axes in _DIFFERENCES
        for pair in _pairs([speed for speed in speeds if speed.is_of_model], axes)
    ]


def _pairs(
    speeds: Sequence[CellSpeed], axes: Sequence[str]
) -> Iterator[tuple[CellSpeed, CellSpeed]]:
    """The subject of each price, and the other one."""
    alike: dict[object, list[CellSpeed]] = {}
    for speed in speeds:
        measurement = speed.measurement
        rest = frozenset(
            (axis, choice or DEFAULTS.get(axis, ""))
            for axis, choice in measurement.axes.items()
            if axis not in axes
        )
        alike.setdefault((measurement.job, measurement.link, rest), []).append(speed)
    for group in alike.values():
        group.sort(key=_by_safety if "sync" in axes else _by_time, reverse=True)
        yield from combinations(group, 2)


def _by_safety(speed: CellSpeed) -> float:
    """The safer sync is the subject: its price is asked for."""
    known = [str(sync) for sync in _BY_SAFETY]
    sync = speed.measurement.axes.get("sync", "")
    return known.index(sync) if sync in known else -1


def _by_time(speed: CellSpeed) -> float:
    """Of two SLOGs the slower one is the subject."""
    return speed.figure.value if speed.is_latency else -speed.figure.value


def _price(
    axes: Sequence[str], subject: CellSpeed, other: CellSpeed, cells: Mapping[str, CellFigures]
) -> Price:
    of = ms_of if subject.is_latency else mib_per_s_of
    ratio = ratio_between(subject.measurement, other.measurement, of)
    names = [_differing_in_words(one.measurement.axes, axes) for one in (subject, other)]
    job = job_in_words(subject.measurement.job)
    where = _setting_in_words(subject, axes)
    parts = [
        f"{names[0]} {_compared(ratio.estimate, names[1], is_time=subject.is_latency)}",
        f"for {job}, {where}",
    ]
    sentence = " ".join(parts)
    if not ratio.rounds:
        sentence += ", measured in different runs"
    elif ratio.estimate.low is None:
        sentence += f", in {ratio.rounds} round" + ("" if ratio.rounds == 1 else "s")
    rates = [
        f"{name} {_loss_in_words(cells.get(one.measurement.cell))}"
        for name, one in zip(names, (subject, other), strict=True)
    ]
    return Price(
        subject=subject.measurement.cell,
        other=other.measurement.cell,
        sentence=sentence[0].upper() + sentence[1:] if axes != ("sync",) else sentence,
        losses="; ".join(rates),
    )


def _compared(estimate: Estimate, other: str, *, is_time: bool) -> str:
    """E.g. `takes 3.1 times (2.8 to 3.4) as long as sync=disabled`."""
    times = estimate_in_words(estimate, "times")
    low, high = estimate.low, estimate.high
    if low is not None and high is not None and low <= 1 <= high:
        kind = "time" if is_time else "throughput"
        return f"does not measurably differ from {other}, with {times} its {kind},"
    if is_time:
        return f"takes {times} as long as {other}"
    return f"has {times} the throughput of {other}"


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
    """All that both cells have, e.g. `with no SLOG, over iSCSI and 1 GbE`."""
    axes = speed.measurement.axes
    fixed = slog_in_words(axes) if "sync" in differing else choice_in_words(axes.get("sync", "?"))
    transport = choice_in_words(axes.get("transport", "?"))
    others = [
        choice_in_words(choice)
        for choice in unusual_choices({k: v for k, v in axes.items() if k != "slog_class"})
    ]
    if axes.get("nfs_export") not in (None, "", DEFAULTS["nfs_export"]):
        others.insert(0, choice_in_words(axes["nfs_export"]))
    over = f"with {fixed}, over {transport} and {link_in_words(speed.measurement.link)}"
    return ", ".join([over, *others])


def _loss_in_words(figures: CellFigures | None) -> str:
    if figures is None or not figures.harm.trials:
        return "has no cuts"
    return in_words(figures.harm)
