"""Notes on trials that differ from the others, and on cells that differ from theory."""

from __future__ import annotations

import duckdb

from torture.records.scoring.lower_bound import said_of
from torture.report.reading.text import printable


def notes_on_manifests(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if a conclusive live trial has no manifest."""
    row = sql.execute(
        "SELECT count(*) FILTER (NOT has_manifest), count(*) FROM live WHERE badness >= 0"
    ).fetchone()
    without, of = row or (0, 0)
    if not without:
        return ()
    were = "was" if without == 1 else "were"
    return (
        f"{without:,} of {of:,} conclusive trials {were} judged without a manifest of the evidence: "
        "missing evidence goes undetected there",
    )


def notes_on_confirmations(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if a live trial was cut at the moment of a finding."""
    row = sql.execute("SELECT count(*) FROM live WHERE is_confirmation").fetchone()
    count = row[0] if row else 0
    if not count:
        return ()
    were = "1 trial was" if count == 1 else f"{count:,} trials were"
    return (
        f"{were} cut at the moment of a finding instead of the drawn one: not counted in rates, but "
        "among the broken guarantees",
    )


def notes_on_lower_bounds(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence for each cell that must lose, and loses less than theory says."""
    rows = sql.execute(
        "SELECT cell, count(*), count(*) FILTER (is_loss) FROM live WHERE is_at_risk "
        "GROUP BY cell ORDER BY cell"
    ).fetchall()
    said = (said_of(printable(cell), at_risk=cuts, lost=lost) for cell, cuts, lost in rows)
    return tuple(filter(None, said))
