"""The walked recordings of each cell, from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from torture.report.reading.text import printable

_QUERY = """
SELECT
    cell,
    count(*) FILTER (badness >= 0 AND walked_states > 0) AS recordings,
    coalesce(sum(walked_states) FILTER (badness >= 0), 0) AS states,
    coalesce(sum(walked_states_proven) FILTER (badness >= 0), 0) AS proven,
    coalesce(sum(walked_states_by_library) FILTER (badness >= 0), 0) AS by_library,
    coalesce(sum(walked_states_lost) FILTER (badness >= 0), 0) AS lost,
    count(*) FILTER (badness >= 0 AND walked_states_lost > 0) AS recordings_lost,
    count(*) FILTER (broke_guarantee) AS broken,
    count(*) FILTER (badness < 0 AND walked_states > 0) AS inconclusive
FROM walks GROUP BY cell
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Walked:
    """The crash states of a cell's conclusive walks: no cuts, and in no rate of cuts."""

    recordings: int
    states: int
    proven: int
    """The states without a recovery: an earlier one has read nothing else than these states have."""
    by_library: int
    """The states whose end is the word of OpenZFS's library alone."""
    lost: int
    """The states that lost something acknowledged, or are damaged."""
    recordings_lost: int
    """The recordings with one of these states."""
    broken: int = 0
    """The recordings that are worse than guaranteed, by a state or by their audit."""
    inconclusive: int = 0
    """Further recordings, of which some states were recovered, and whose walks say nothing."""


def walked_by_cell(rows: Callable[[str], Sequence[Sequence[Any]]]) -> dict[str, Walked]:
    """The walks of all cells that have one; `rows` asks the store."""
    names = Walked.__dataclass_fields__
    return {cell: Walked(**dict(zip(names, of, strict=True))) for cell, *of in rows(_QUERY)}


def notes_on_walks(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence for each cell with losses of an older walk that may be of states that no cut leaves."""
    found = sql.execute(
        "SELECT cell, sum(walked_states_lost), count(*) FROM walks WHERE walked_perhaps_illegal "
        "GROUP BY cell ORDER BY cell"
    ).fetchall()
    return tuple(
        f"{printable(cell)}: {lost:,} walked states lost something, and may be states that no cut "
        f"leaves. {'A walk' if walks == 1 else f'{walks:,} walks'} of an older suite dropped writes "
        "that a protected disk had completed; tools/replay decides again where the recording is kept"
        for cell, lost, walks in found
    )
