"""The versions of OpenZFS of the live trials, and a sentence for the report's reader about several."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from torture.report.reading.text import printable, shortened

_NOT_SAID = "an unknown version"


def zfs_versions(sql: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The number of live trials of each version, the most frequent first."""
    rows = sql.execute(
        "SELECT zfs, count(*) FROM live GROUP BY zfs ORDER BY count(*) DESC, zfs"
    ).fetchall()
    return {shortened(printable(zfs)) or _NOT_SAID: trials for zfs, trials in rows}


def notes_on_versions(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if one rate counts trials of several versions."""
    return note_on_several("OpenZFS", zfs_versions(sql))


def note_on_several(software: str, trials_of: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence, if there are trials of several versions of this software."""
    if len(trials_of) < 2:
        return ()
    counts = ", ".join(f"{trials:,} of {version}" for version, trials in trials_of.items())
    return (
        f"several versions of {software} count together: {counts}; to separate them, report on each "
        "by itself, or --compare them",
    )


def notes_on_states(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if one rate counts trials that several states of the suite have made."""
    rows = sql.execute(
        "SELECT engine_state, count(*) FROM judged GROUP BY ALL ORDER BY count(*) DESC, engine_state"
    ).fetchall()
    trials_of = {
        shortened(printable(state)) or "an unknown state": trials for state, trials in rows
    }
    if len(trials_of) < 2:
        return ()
    counts = ", ".join(f"{trials:,} of {state}" for state, trials in trials_of.items())
    return (f"trials of {len(trials_of)} states of the suite count together: {counts}",)
