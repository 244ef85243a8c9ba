"""The rates of records in memory, for the table at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median

from torture.records.record.trials import Origin, TrialRecord
from torture.report.figures.cell_figures import CellRates, cell_rates
from torture.report.reading.tally import WORTH, TrialKind, Worth, kind_of


def summarise(
    records: Iterable[TrialRecord], *, is_sequential: bool = False
) -> tuple[CellRates, ...]:
    """The rates of each cell's live trials, by name.

    `is_sequential`: the cells stopped when their question was answered.
    """
    counts: dict[str, Counter[TrialKind]] = {}
    guarantees: dict[str, str] = {}
    for record in records:
        if record.origin is Origin.LIVE:
            kind = kind_of(record, record.guarantee)
            counts.setdefault(record.cell, Counter())[kind] += 1
            guarantees[record.cell] = record.guarantee
    return tuple(
        cell_rates(
            cell, guarantee=guarantees[cell], counts=counts[cell], is_sequential=is_sequential
        )
        for cell in sorted(counts)
    )


def worth_of(records: Iterable[TrialRecord]) -> dict[str, Worth]:
    """Each cell's worth, by name: medians over its conclusive live trials with a measurement."""
    measured: dict[str, dict[str, list[float]]] = {}
    for record in records:
        if record.origin is not Origin.LIVE or not record.is_conclusive:
            continue
        for part in (record.speed, record.absence):
            for name in set(WORTH) & set(part.__dataclass_fields__):
                if (value := getattr(part, name)) is not None:
                    measured.setdefault(record.cell, {}).setdefault(name, []).append(value)
    return {
        cell: Worth(**{name: median(values) for name, values in measured[cell].items()})
        for cell in sorted(measured)
    }
