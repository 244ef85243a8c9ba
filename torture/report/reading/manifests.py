"""What a reader must be told of trials that are older than the manifests of their evidence."""

from __future__ import annotations

import duckdb


def notes_on_manifests(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if a conclusive live trial was judged without one."""
    row = sql.execute(
        "SELECT count(*) FILTER (NOT has_manifest), count(*) FROM live WHERE badness >= 0"
    ).fetchone()
    without, of = row or (0, 0)
    if not without:
        return ()
    were = "was" if without == 1 else "were"
    return (
        f"{without:,} of {of:,} conclusive trials {were} judged without a manifest of the evidence: "
        "nothing tells what of it is missing",
    )
