"""The two tables of CSV and Parquet: one row per trial, and one row per cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from torture.choices.matrix.cells import AXES
from torture.errors import HarnessError
from torture.facts.evidence.documents import COUNT_MAX
from torture.facts.stats.rates import CONFIDENCE, Rate
from torture.files import whole_file
from torture.oracles.verdict.guarantee import Verdict
from torture.report.figures.answer import theory_of
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.reading.columns import TRIAL_COLUMNS
from torture.report.reading.loading import fill
from torture.report.reading.store import Store
from torture.report.reading.tally import WORTH, survey_kinds

EXPORT_SCHEMA = 3
"""The schema of all exports: it grows when a field vanishes or changes its meaning, not when one is
added.
"""

TRIALS = "trials"
CELLS = "cells"

CELL_RATES = ("harm", "loss", "corruption")
"""The rates of `CellFigures` in every export; the page's own comes first."""
_RATES = tuple(
    f"{rate}{counted}" for rate in CELL_RATES for counted in ("", "_counted_safe", "_counted_lost")
)
"""The last two count inconclusive trials as well, except empty cuts."""

CELL_COLUMNS = {
    "cell": "VARCHAR",
    **dict.fromkeys([*AXES, "axes", "guarantee", "answer_group"], "VARCHAR"),
    **dict.fromkeys(["trials", "conclusive", "empty", "confirmations"], "BIGINT"),
    **{verdict.replace("-", "_"): "BIGINT" for verdict in Verdict},
    **{
        f"{rate}_{name}": kind
        for rate in _RATES
        for name, kind in {
            "events": "BIGINT", "share": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE",
        }.items()
    },
    "is_sequential": "BOOLEAN",
    "confidence": "DOUBLE",
    "broken": "BIGINT",
    **{column: "BIGINT" for kind in survey_kinds() for column in kind.columns},
    "acknowledged_per_s": "DOUBLE",
    **dict.fromkeys(WORTH, "DOUBLE"),
    "acknowledged_in_outage": "BIGINT",
    **dict.fromkeys(["rollback_least_ms", "rollback_median_ms", "rollback_most_ms"], "DOUBLE"),
    "export_schema": "BIGINT",
}  # fmt: skip


def queries(store: Store) -> dict[str, str]:
    """The query of each table, by its name, in a stable order."""
    rows = [_cell_row(figures) for figures in cell_figures(store.tallies())]
    columns = ", ".join(f'"{name}" {kind}' for name, kind in CELL_COLUMNS.items())
    store.sql.execute(f"CREATE OR REPLACE TEMP TABLE cell_figures ({columns})")
    if rows:
        fill(store.sql, "cell_figures", CELL_COLUMNS, zip(*rows, strict=True))
    trials = ", ".join(f'"{name}"' for name in TRIAL_COLUMNS)
    return {
        TRIALS: f"SELECT {trials}, {EXPORT_SCHEMA} AS export_schema FROM trials "
        'ORDER BY cell, "index" NULLS LAST, trial, origin, origin_run',
        CELLS: "SELECT * FROM cell_figures ORDER BY cell",
    }


def copy_to(store: Store, query: str, path: Path, options: str) -> Path:
    """Write a query's rows to a file with duckdb's COPY; returns the path.

    Raises `HarnessError` when the file cannot be written.
    """
    try:
        with whole_file(path.absolute()) as partial:
            place = str(partial).replace("'", "''")
            store.sql.execute(f"COPY ({query}) TO '{place}' ({options})")
    except (duckdb.Error, OSError) as error:
        raise HarnessError(f"{path} cannot be written: {error}", hint="df -h") from error
    return path


def _cell_row(figures: CellFigures) -> tuple[Any, ...]:
    rollback = figures.rollback_ms
    return (
        figures.cell,
        *(figures.axes.get(axis, "") for axis in AXES),
        json.dumps(figures.axes),
        figures.guarantee,
        theory_of(figures).value,
        figures.trials,
        figures.conclusive,
        figures.empty,
        figures.confirmations,
        *(figures.verdicts.get(verdict, 0) for verdict in Verdict),
        *(
            value
            for rate in (getattr(figures, name) for name in CELL_RATES)
            for counted in (rate, *figures.either_way(rate))
            for value in _rate(counted)
        ),
        figures.harm.is_sequential,
        CONFIDENCE,
        figures.broken,
        *figures.survey_counts.values(),
        figures.acknowledged_per_s,
        *(getattr(figures.worth, name) for name in WORTH),
        min(figures.acknowledged_in_outage, COUNT_MAX),
        *((rollback.least, rollback.median, rollback.most) if rollback else (None, None, None)),
        EXPORT_SCHEMA,
    )


def _rate(rate: Rate) -> tuple[int, float | None, float, float]:
    return rate.events, rate.share if rate.trials else None, rate.low, rate.high
