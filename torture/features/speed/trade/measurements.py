"""The measured speed of each cell, from the records of origin `measured`: no other reader counts these.

Rates, grids, worst cases and phases are of live trials, and a measurement has no cut.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from torture.choices.matrix.cells import Cell
from torture.features.speed.documents import MeasuredDocument, MeasuredJob, MeasuredPlace
from torture.features.speed.jobs.jobs import Link, Pattern, SpeedJob
from torture.features.speed.jobs.slow_motion import SHARE_MAX, Estimate, mean_of, ratio_of
from torture.features.speed.tasks import MEASURED
from torture.records.record.trials import TrialRecord
from torture.report.reading.text import printable, shortened


class RoundKey(NamedTuple):
    """A round, alike in all cells of one run: measurements go through the cells in passes."""

    run: str
    zfs: str
    turn: int
    """The place of the measurement among those of its cell, from 0."""
    round: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """A job of a cell over one link, in all rounds that have positive figures."""

    cell: str
    axes: dict[str, str]
    place: str
    device: str
    """The class of a log device that was measured alone; else empty."""
    job: SpeedJob
    link: str
    """Empty where it was not modelled."""
    slow_motion: tuple[int, ...]
    rounds: Mapping[RoundKey, MeasuredJob]


class _Subject(NamedTuple):
    cell: str
    place: str
    device: str
    job: SpeedJob
    link: str


def measurements_of(lines: Callable[..., Iterator[tuple[Any, TrialRecord]]]) -> list[Measurement]:
    """All measurements, by cell, in the order of their jobs; `lines` is that of the store.

    A job of another version is left out, and so is a round that has a figure of 0.
    """
    rounds: dict[_Subject, dict[RoundKey, MeasuredJob]] = {}
    slow: dict[_Subject, list[int]] = {}
    axes: dict[str, dict[str, str]] = {}
    turns = Counter[tuple[str, ...]]()
    for _, record in lines(only=f"origin = '{MEASURED}'"):
        document = record.part(MeasuredDocument)
        alone = document.device if document and document.place != MeasuredPlace.VOLUME else ""
        own = (record.origin_run, record.zfs, record.cell, alone)
        turn = turns[own]
        turns[own] += 1
        if document is None or not record.is_conclusive:
            continue
        axes[record.cell] = _axes_of(record)
        for ended in document.jobs:
            job = _readable(ended)
            if job is None:
                continue
            link = shortened(printable(ended.link))
            subject = _Subject(record.cell, document.place, alone, job, link)
            key = RoundKey(record.origin_run, record.zfs, turn, ended.round)
            rounds.setdefault(subject, {})[key] = ended
            slow.setdefault(subject, []).append(document.slow_motion_of(ended))
    return [
        Measurement(
            **subject._asdict(),
            axes=axes[subject.cell],
            slow_motion=tuple(dict.fromkeys(slow[subject])),
            rounds=own_rounds,
        )
        for subject, own_rounds in rounds.items()
    ]


def _readable(ended: MeasuredJob) -> SpeedJob | None:
    if not (ended.mean_ms > 0 and ended.mib_per_s > 0 and ended.operations_per_s > 0):
        return None
    try:
        return SpeedJob.parse(ended.job)
    except ValueError:
        return None


def _axes_of(record: TrialRecord) -> dict[str, str]:
    """Today's axes of a known cell; else the record's."""
    try:
        return Cell.parse(record.cell).axes
    except ValueError:
        return record.axes


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
        above, below = (mean_of([*map(of, one.rounds.values())]) for one in (over, under))
        return Ratio(estimate=Estimate(value=above.value / below.value), rounds=0)
    estimate = ratio_of(
        [of(over.rounds[key]) for key in keys], [of(under.rounds[key]) for key in keys]
    )
    return Ratio(estimate=estimate, rounds=len(keys))


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
