"""The process's own database in memory: its connections do not share tables."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache

import duckdb

_MEMORY = "400MB"
"""The memory of all connections together; the rest goes to a temporary folder."""
_THREADS = 4


def connect() -> duckdb.DuckDBPyConnection:
    """A connection for TEMP tables and views, which are private to it and end with it.

    Use it as a context manager. A separate database would take ten times as long to open.
    """
    return _database().cursor()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    spill = tempfile.mkdtemp(prefix="report-")
    atexit.register(shutil.rmtree, spill, ignore_errors=True)
    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": _MEMORY,
            "threads": _THREADS,
            "temp_directory": spill,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
