"""KVM and emulation in one report: whether live trials of both count, and how each of them ended.

Emulated guests are slower, so that other writes are under way at the cut. A rate over both is of
neither.
"""

from __future__ import annotations

import duckdb

from torture.report.reading.text import printable, shortened

_HINT = "report on the hosts of each by themselves"


def accelerators(sql: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Each known accelerator of live trials to the outcomes of its conclusive ones, in words."""
    rows = sql.execute(
        "SELECT accelerator, count(*) FILTER (badness >= 0 AND is_loss), "
        "count(*) FILTER (badness >= 0) FROM live WHERE accelerator <> '' "
        "GROUP BY accelerator ORDER BY accelerator"
    ).fetchall()
    return {
        shortened(printable(name)): f"a loss in {losses:,} of {trials:,}"
        for name, losses, trials in rows
    }


def notes_on_accelerators(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence with the outcomes of each, if one rate counts trials of several accelerators."""
    found = accelerators(sql)
    if len(found) < 2:
        return ()
    apart = "; ".join(f"{name}: {outcomes}" for name, outcomes in found.items())
    return (f"trials of KVM and of emulation count together. Apart: {apart}; {_HINT}",)
