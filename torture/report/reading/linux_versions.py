"""The kernels of the live trials, and a sentence for the report's reader about several."""

from __future__ import annotations

import duckdb

from torture.report.reading.text import printable, shortened
from torture.report.reading.zfs_versions import note_on_several

_NOT_SAID = "an unknown kernel"


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
    return shortened(printable(text)) or _NOT_SAID
