"""Tables of live cuts for the page, and the two of CSV and Parquet: a row per trial, and per cell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from torture.choices.administration.protocol import Moment, Outcome
from torture.choices.matrix.cells import AXES, CHOICES
from torture.errors import HarnessError
from torture.facts.evidence.documents import COUNT_MAX
from torture.facts.stats.rates import CONFIDENCE, Rate, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.files import whole_file
from torture.oracles.verdict.guarantee import Verdict
from torture.report.figures.answer import theory_of
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.reading.columns import TRIAL_COLUMNS
from torture.report.reading.loading import fill
from torture.report.reading.store import Store
from torture.report.reading.tally import WORTH, survey_kinds

_CORRUPTIONS = ", ".join(f"'{verdict}'" for verdict in Verdict if verdict.is_corruption)
_LOSSES = (
    f"({{0}}.is_loss OR {{0}}.verdict IN ({_CORRUPTIONS}))",
    f"({{0}}.verdict = '{Verdict.POOL_LOST}')",
)
"""The conditions of SQL for a cut that lost or damaged data, and for one that lost the pool."""
_OUTCOMES = ", ".join(f"'{outcome}'" for outcome in Outcome)
_MOMENTS = ", ".join(f"'{moment}'" for moment in Moment)


class Fallen(NamedTuple):
    """The cuts of a phase of ZFS's write path, and how many of them found something to take."""

    phase: str
    cuts: int
    at_risk: int
    """With something unflushed, in flight or being acknowledged."""
    unflushed: int
    """With a write that no flush covered."""
    in_flight: int
    empty: int
    """With nothing that could have been lost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """The conclusive cuts of one guarantee whose disks kept the same of what was unflushed."""

    guarantee: str
    policies: str
    harm: Rate
    """The rate of cuts that lost or damaged data."""
    lost_pool: Rate


class Administered(NamedTuple):
    """The cuts amid an operation on the pool, at one planned moment, by outcome."""

    words: str
    moment: str
    cuts: int
    returned: int
    """Those at which the command had returned."""
    outcomes: list[int]
    """Of conclusive cuts, in the order of `Outcome`."""
    no_pool: int
    inconclusive: int


def fallen_cuts(sql: duckdb.DuckDBPyConnection) -> tuple[Fallen, ...]:
    """A row for each phase, the most frequent first."""
    risks = ("at_risk", "unflushed", "in_flight", "empty")
    counts = ", ".join(f"count(*) FILTER (cut_{risk} > 0)" for risk in risks)
    rows = sql.execute(
        f"SELECT cut_phase, count(*), {counts} FROM live WHERE coalesce(cut_phase, '') <> '' "
        "GROUP BY cut_phase ORDER BY count(*) DESC, cut_phase"
    ).fetchall()
    return tuple(Fallen(*row) for row in rows)


def kept_by_disks(sql: duckdb.DuckDBPyConnection) -> tuple[Kept, ...]:
    """A row for each guarantee and policy: a rate over all would depend on the draw of policies."""
    # of a loss that only a later try shows, the lower bound counts none
    counts = ", ".join(
        f"count(*) FILTER ({lost.format('live')}), count(*) FILTER ({lost.format('live')} "
        f"AND first.place IS NOT NULL AND NOT {lost.format('first')})"
        for lost in _LOSSES
    )
    rows = sql.execute(
        f"SELECT live.guarantee, live.cut_policies, bool_or(is_sequential), count(*), {counts} "
        "FROM live JOIN runs USING (source) LEFT JOIN first_tries AS first "
        "ON first.counts = live.place WHERE live.badness >= 0 AND NOT live.is_confirmation "
        "AND coalesce(live.cut_policies, '') <> '' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    kept = []
    for guarantee, policies, is_sequential, cuts, harm, later_harm, pool, later_pool in rows:
        of = sequential_rate_of if is_sequential else rate_of
        kept.append(
            Kept(
                guarantee=guarantee,
                policies=policies,
                harm=of(harm, cuts, later=later_harm),
                lost_pool=of(pool, cuts, later=later_pool),
            )
        )
    return tuple(kept)


def administered_cuts(sql: duckdb.DuckDBPyConnection) -> tuple[Administered, ...]:
    """A row for each operation and moment."""
    counts = ", ".join(
        f"count(*) FILTER (badness >= 0 AND administration_outcome = '{outcome}')"
        for outcome in Outcome
    )
    rows = sql.execute(
        "SELECT administration, administration_moment, count(*), "
        f"count(*) FILTER (administration_returned), [{counts}], "
        f"count(*) FILTER (badness >= 0 AND administration_outcome NOT IN ({_OUTCOMES})), "
        "count(*) FILTER (badness < 0) FROM live JOIN cells USING (cell) WHERE is_administered "
        f"GROUP BY ALL ORDER BY administration, min(list_position([{_MOMENTS}], administration_moment))"
    ).fetchall()
    return tuple(
        Administered(CHOICES[name].words if name in CHOICES else name, *rest)
        for name, *rest in rows
    )


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
    "checked": "BIGINT",
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
        min(figures.checked, COUNT_MAX),
        min(figures.acknowledged_in_outage, COUNT_MAX),
        *((rollback.least, rollback.median, rollback.most) if rollback else (None, None, None)),
        EXPORT_SCHEMA,
    )


def _rate(rate: Rate) -> tuple[int, float | None, float, float]:
    return rate.events, rate.share if rate.trials else None, rate.low, rate.high
