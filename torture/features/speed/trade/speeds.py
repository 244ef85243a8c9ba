"""A cell's measured speed: means over rounds with intervals, and ratios of two cells' rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torture.features.speed.documents import MeasuredJob
from torture.features.speed.jobs.jobs import Pattern, SpeedJob
from torture.features.speed.jobs.link import Link
from torture.features.speed.jobs.ratios import Estimate, mean_of, ratio_of
from torture.features.speed.jobs.slow_motion import SHARE_MAX
from torture.features.speed.trade.measurements import Measurement

FigureOf = Callable[[MeasuredJob], float]

NO_FIGURE = "no figure: the emulator's time"

_DIGITS = 2
_MORE_DIGITS = 3
_NARROW = 1.25
"""An interval whose upper end by its lower one is less needs three digits."""
_LINKS = {Link.GBE1: "1 GbE", Link.GBE10: "10 GbE", Link.GBE25: "25 GbE", Link.FC4: "4 Gb/s FC"}
_JOBS = {
    Pattern.SYNC_WRITE: "synchronous writes",
    Pattern.RANDOM_WRITE: "random writes",
    Pattern.SEQUENTIAL_WRITE: "writes in a row",
    Pattern.SEQUENTIAL_READ: "reads in a row",
    Pattern.RANDOM_READ: "random reads",
    Pattern.COLD_SEQUENTIAL_READ: "reads in a row from disks",
    Pattern.COLD_RANDOM_READ: "random reads from disks",
    Pattern.GOBONNIEGO_WRITE: "gobonniego's writes in a row",
    Pattern.GOBONNIEGO_READ: "gobonniego's reads in a row",
    Pattern.GOBONNIEGO_IOPS: "gobonniego's random reads and writes",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CellSpeed:
    """A job of a cell over a link, over all its rounds."""

    measurement: Measurement
    emulator_share: float
    """The largest of all rounds."""
    ms: Estimate
    mib_per_s: Estimate

    @property
    def is_of_model(self) -> bool:
        """Whether its figures are the model's; otherwise their time is the emulator's."""
        return self.emulator_share <= SHARE_MAX

    @property
    def is_latency(self) -> bool:
        """Whether the time of an operation is its figure; otherwise its throughput is."""
        return is_latency(self.measurement.job)

    @property
    def figure(self) -> Estimate:
        """The figure by which cells are compared."""
        return self.ms if self.is_latency else self.mib_per_s


def is_latency(job: SpeedJob) -> bool:
    """Whether each operation is waited for."""
    return job.pattern.waits_for_each


def ms_of(job: MeasuredJob) -> float:
    """The mean time of an operation."""
    return job.mean_ms


def mib_per_s_of(job: MeasuredJob) -> float:
    """The throughput."""
    return job.mib_per_s


def speed_of(measurement: Measurement) -> CellSpeed:
    """The speed of a measurement that has rounds."""
    ended = list(measurement.rounds.values())
    return CellSpeed(
        measurement=measurement,
        emulator_share=max(job.emulator_share for job in ended),
        ms=mean_of(list(map(ms_of, ended))),
        mib_per_s=mean_of(list(map(mib_per_s_of, ended))),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """A figure of one measurement by that of another one."""

    estimate: Estimate
    rounds: int
    """The rounds that both have; 0 where they are of different runs, and the interval is unknown."""


def ratio_between(over: Measurement, under: Measurement, of: FigureOf) -> Ratio:
    """The ratio over the rounds that both have; without any, that of their means."""
    keys = [key for key in over.rounds if key in under.rounds]
    if not keys:
        above, below = (mean_of(_all(one, of)) for one in (over, under))
        return Ratio(estimate=Estimate(value=above.value / below.value), rounds=0)
    estimate = ratio_of(
        [of(over.rounds[key]) for key in keys], [of(under.rounds[key]) for key in keys]
    )
    return Ratio(estimate=estimate, rounds=len(keys))


def _all(measurement: Measurement, of: FigureOf) -> Sequence[float]:
    return [of(job) for job in measurement.rounds.values()]


def estimate_in_words(estimate: Estimate, unit: str) -> str:
    """E.g. `3.1 ms (2.8 to 3.4)`: the interval is rounded outwards; `unit` may be empty."""
    count = _MORE_DIGITS if estimate.width < _NARROW else _DIGITS
    value = f"{digits(estimate.value, count)} {unit}".rstrip()
    if estimate.low is None or estimate.high is None:
        return value
    low, high = digits(estimate.low, count, math.floor), digits(estimate.high, count, math.ceil)
    return f"{value} ({low} to {high})"


def digits(value: float, count: int, rounded: Callable[[float], int] = round) -> str:
    """So many significant digits, and all digits before the point: `0.0025`, `3.1`, `1,234`."""
    if value <= 0 or not math.isfinite(value):
        return "?"
    decimals = max(0, count - 1 - math.floor(math.log10(value)))
    # 0.3 is 0.299... in binary
    scaled = round(value * 10**decimals, 9)
    return f"{rounded(scaled) / 10**decimals:,.{decimals}f}"


def job_in_words(job: SpeedJob) -> str:
    """E.g. `synchronous writes of 64 KiB, 4 threads`."""
    threads = f", {job.threads} threads" if job.threads > 1 else ""
    return f"{_JOBS[job.pattern]} of {job.block_kib:g} KiB{threads}"


def link_in_words(link: str) -> str:
    """E.g. `1 GbE`; a link of another version is its own name."""
    if not link:
        return "no modelled link"
    return _LINKS[Link(link)] if link in frozenset(Link) else link


def speeds_of(measurements: Iterable[Measurement]) -> list[CellSpeed]:
    """The speeds of cells: measurements behind transport and NAS, without log devices measured alone."""
    return [speed_of(one) for one in measurements if not one.device]
