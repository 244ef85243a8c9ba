"""Notes for the report's reader: trials that differ, replays and reruns, cells that lose too little."""

from __future__ import annotations

from collections import Counter

import duckdb

from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Origin
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


_EXAMPLES_MAX = 3
_REPEATS = (Origin.REPLAY, Origin.RERUN)


def notes_on_repeats(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if a trial was repeated: how many repeats ended like the original, if that is here."""
    rows = sql.execute(
        "SELECT again.trial, again.origin, again.verdict, first.verdict FROM counted AS again "
        "LEFT JOIN live AS first ON first.trial = again.repeats WHERE list_contains(?, again.origin) "
        # a trial may be live on several versions of ZFS and Linux: prefer those of the repeat
        "QUALIFY row_number() OVER (PARTITION BY again.place ORDER BY first.zfs = again.zfs DESC, "
        "(first.linux_nas, first.linux_client) = (again.linux_nas, again.linux_client) DESC) = 1 "
        "ORDER BY again.trial, again.origin_run",
        [[origin.value for origin in _REPEATS]],
    ).fetchall()
    if not rows:
        return ()
    origins = Counter(origin for _, origin, _, _ in rows)
    kinds = " and ".join(
        f"{origins[origin]:,} {origin}{'s' if origins[origin] > 1 else ''}"
        for origin in _REPEATS
        if origins[origin]
    )
    others = [row for row in rows if row[3] is not None and row[2] != row[3]]
    lost = sum(row[3] is None for row in rows)
    parts = [f"{len(rows) - len(others) - lost:,} ended as the trial that was repeated"]
    if others:
        examples = [f"{printable(trial)}: {now}, was {was}" for trial, _, now, was in others]
        rest = len(others) - _EXAMPLES_MAX
        shown = "; ".join(examples[:_EXAMPLES_MAX]) + (f"; and {rest:,} more" if rest > 0 else "")
        parts.append(f"{len(others):,} otherwise ({shown})")
    if lost:
        parts.append(f"of {lost:,} that trial is not here")
    return (f"{kinds} left out of all rates and cases: {', '.join(parts)}",)


def notes_on_lower_bounds(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence for each cell that must lose, and loses less than theory says."""
    rows = sql.execute(
        "SELECT cell, count(*), count(*) FILTER (is_loss) FROM live WHERE is_at_risk "
        "GROUP BY cell ORDER BY cell"
    ).fetchall()
    said = (said_of(printable(cell), at_risk=cuts, lost=lost) for cell, cuts, lost in rows)
    return tuple(filter(None, said))
