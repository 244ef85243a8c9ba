"""Tables of live cuts: where they fell, what the disks kept, and the outcome of administrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import duckdb

from torture.choices.administration.protocol import Moment, Outcome
from torture.choices.matrix.cells import CHOICES
from torture.facts.stats.rates import Rate, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.oracles.verdict.guarantee import Verdict

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
