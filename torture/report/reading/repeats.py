"""Sentences for the report's reader about replays and reruns: their outcomes, outside of all rates."""

from __future__ import annotations

from collections import Counter

import duckdb

from torture.records.record.trials import Origin
from torture.report.reading.text import printable

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
