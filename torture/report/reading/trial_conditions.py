"""The versions and accelerators of the live trials, and a sentence for the report's reader on each.

Emulated guests are slower, so that other writes are under way at the cut. A rate over both is of
neither.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from torture.report.reading.text import printable, shortened

_ZFS_NOT_SAID = "an unknown version"


def zfs_versions(sql: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The number of live trials of each version, the most frequent first."""
    rows = sql.execute(
        "SELECT zfs, count(*) FROM live GROUP BY zfs ORDER BY count(*) DESC, zfs"
    ).fetchall()
    return {shortened(printable(zfs)) or _ZFS_NOT_SAID: trials for zfs, trials in rows}


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


_LINUX_NOT_SAID = "an unknown kernel"


def kernels(sql: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The number of live trials of each pair of kernels, in words, the most frequent first.

    Machines with the same kernel are one word; others name the NAS's first.
    """
    rows = sql.execute(
        "SELECT linux_nas, linux_client, count(*) FROM live GROUP BY linux_nas, linux_client "
        "ORDER BY count(*) DESC, linux_nas, linux_client"
    ).fetchall()
    return {_in_words(nas, client): trials for nas, client, trials in rows}


def notes_on_kernels(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if one rate counts trials of several kernels."""
    return note_on_several("Linux", kernels(sql))


def _in_words(nas: str, client: str) -> str:
    if nas == client:
        return _release(nas)
    return f"{_release(nas)} in the NAS and {_release(client)} in the client"


def _release(text: str) -> str:
    return shortened(printable(text)) or _LINUX_NOT_SAID


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
