"""The published tables, with ours beside theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torture.features.speed.jobs.published import (
    TABLES,
    Curve,
    FigureKind,
    Ours,
    PublishedRow,
    PublishedTable,
    Sweep,
    Swept,
)
from torture.features.speed.jobs.slow_motion import SHARE_MAX, Estimate, mean_of
from torture.features.speed.trade.measurements import (
    NO_FIGURE,
    FigureOf,
    Measurement,
    estimate_in_words,
    ratio_between,
    speed_of,
)

_MB_PER_MIB = 2**20 / 1e6
_US_PER_MS = 1000
_US_BELOW_MS = 0.1


_OF: dict[FigureKind, FigureOf] = {
    FigureKind.MS: lambda job: job.mean_ms,
    FigureKind.MIB_PER_S: lambda job: job.mib_per_s,
    FigureKind.MB_PER_S: lambda job: job.mib_per_s * _MB_PER_MIB,
    FigureKind.PER_S: lambda job: job.operations_per_s,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RowBeside:
    """A line of a published table, and for each column our figure; empty where not measured."""

    row: PublishedRow
    ours: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A figure of a curve, at its place on the axis."""

    at: float
    figure: Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepDrawn:
    """A picture, with the measured points of each curve; a curve without any is left out."""

    sweep: Sweep
    curves: Mapping[str, tuple[Point, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableBeside:
    """A published table with ours."""

    table: PublishedTable
    rows: tuple[RowBeside, ...]
    sweeps: tuple[SweepDrawn, ...]
    """Its pictures of which something was measured."""

    @property
    def is_measured(self) -> bool:
        """Whether any figure is ours."""
        return any(any(row.ours) for row in self.rows)


def beside_published(measurements: Sequence[Measurement]) -> list[TableBeside]:
    """All published tables, in their order."""
    return [
        TableBeside(
            table=table,
            rows=tuple(
                RowBeside(
                    row=row,
                    ours=tuple(
                        "" if one is None else _figure_in_words(one, measurements)
                        for one in row.ours or (None,) * len(table.columns)
                    ),
                )
                for row in table.rows
            ),
            sweeps=tuple(_drawn(table.sweeps, measurements)),
        )
        for table in TABLES
    ]


def _drawn(sweeps: Sequence[Sweep], measurements: Sequence[Measurement]) -> Iterator[SweepDrawn]:
    for sweep in sweeps:
        curves = {curve.words: tuple(_points(curve, sweep, measurements)) for curve in sweep.curves}
        if measured := {words: points for words, points in curves.items() if points}:
            yield SweepDrawn(sweep=sweep, curves=measured)


def _points(curve: Curve, sweep: Sweep, measurements: Sequence[Measurement]) -> Iterator[Point]:
    """The points that are the model's."""
    for ours in curve.ours:
        found = _found(ours, measurements)
        if found is None or not speed_of(found).is_of_model:
            continue
        job = found.job
        at = job.threads if sweep.swept is Swept.THREADS else job.block_kib
        yield Point(at=at, figure=mean_of([_OF[ours.kind](one) for one in found.rounds.values()]))


def _figure_in_words(ours: Ours, measurements: Sequence[Measurement]) -> str:
    found = _found(ours, measurements)
    under = None if ours.over is None else _found(ours.over, measurements)
    if found is None or (ours.over is not None and under is None):
        return ""
    jobs = [*found.rounds.values(), *(under.rounds.values() if under else ())]
    if max(job.emulator_share for job in jobs) > SHARE_MAX:
        return NO_FIGURE
    if under is not None:
        return estimate_in_words(ratio_between(found, under, _OF[ours.kind]).estimate, "")
    figures = [_OF[ours.kind](job) for job in jobs]
    if ours.kind is not FigureKind.MS:
        return estimate_in_words(mean_of(figures), ours.kind)
    if max(figures) < _US_BELOW_MS:
        return estimate_in_words(mean_of([ms * _US_PER_MS for ms in figures]), "us")
    return estimate_in_words(mean_of(figures), "ms")


def _found(ours: Ours, measurements: Sequence[Measurement]) -> Measurement | None:
    """The measurement of a figure: its own cell, job, link and device."""
    for one in measurements:
        if (one.cell, one.job.name, one.link, one.device) == (
            ours.cell, ours.job, ours.link, ours.device,
        ):  # fmt: skip
            return one
    return None
