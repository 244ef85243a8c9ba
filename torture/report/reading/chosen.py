"""Notes on trials that differ from the others: those without a manifest, and confirmations."""

from __future__ import annotations

import duckdb


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
