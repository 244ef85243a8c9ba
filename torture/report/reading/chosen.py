"""Notes on trials that differ: without a manifest, by an older rule, and confirmations."""

from __future__ import annotations

import duckdb

from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
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


def notes_on_older_rules(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if intact trials of safe cells would need their evidence to be judged again.

    Their records do not say how many writers failed for good, which is damage now.
    """
    rows = sql.execute(
        "SELECT cell, count(*) FROM live WHERE verdict = ? AND guarantee = ? AND writers = 0 "
        "AND contains(reasons, 'failed in the client') GROUP BY cell ORDER BY cell",
        [Verdict.INTACT, Guarantee.SAFE],
    ).fetchall()
    if not rows:
        return ()
    of = ", ".join(f"{trials:,} of {printable(cell)}" for cell, trials in rows)
    return (
        f"operations failed in the client of {sum(trials for _, trials in rows):,} intact trials: {of}. "
        "An older judge saw no damage in that; by today's rule a writer that fails for good breaks a "
        "safe guarantee",
    )
