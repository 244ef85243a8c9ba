"""Notes on cells that must lose, and lose less than theory says."""

from __future__ import annotations

import duckdb

from torture.records.scoring.lower_bound import said_of
from torture.report.reading.text import printable


def notes_on_lower_bounds(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence for each cell that must lose, and loses less than theory says."""
    rows = sql.execute(
        "SELECT cell, count(*), count(*) FILTER (is_loss) FROM live WHERE is_at_risk "
        "GROUP BY cell ORDER BY cell"
    ).fetchall()
    said = (said_of(printable(cell), at_risk=cuts, lost=lost) for cell, cuts, lost in rows)
    return tuple(filter(None, said))
