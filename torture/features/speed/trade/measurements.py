"""The measured speed of each cell, from the records of origin `measured`: no other reader counts these.

Rates, grids, worst cases and phases are of live trials, and a measurement has no cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from torture.choices.matrix.cells import Cell
from torture.features.speed.documents import MeasuredDocument, MeasuredJob, MeasuredPlace
from torture.features.speed.jobs.jobs import SpeedJob
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
