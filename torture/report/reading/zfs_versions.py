"""Which versions of OpenZFS the live trials ran on, and what a reader must be told of several."""

from __future__ import annotations

import duckdb

from torture.report.reading.text import printable, shortened

_NOT_SAID = "a version that is not said"


def zfs_versions(sql: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many live trials there are of each version, the most frequent first."""
    rows = sql.execute(
        "SELECT zfs, count(*) FROM live GROUP BY zfs ORDER BY count(*) DESC, zfs"
    ).fetchall()
    return {shortened(printable(zfs)) or _NOT_SAID: trials for zfs, trials in rows}


def notes_on_versions(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if trials of several versions are in one rate."""
    versions = zfs_versions(sql)
    if len(versions) < 2:
        return ()
    told = ", ".join(f"{trials:,} of {version}" for version, trials in versions.items())
    return (
        f"several versions of OpenZFS count together: {told}; to tell them apart, report on each by "
        "itself, or --compare them",
    )
