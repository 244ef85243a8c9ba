"""The process's own database in memory, and the rows of its answers."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb

from torture.records.record.trials import TrialRecord
from torture.report.reading.runs import RunInfo

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


class Breach(NamedTuple):
    """A trial that broke its guarantee: the ways in which it did."""

    cell: str
    trial: str
    origin: str
    badness: int
    """Of its verdict; -1 for an inconclusive one."""
    has_broken_audit: bool
    is_unfounded: bool
    """Whether nothing vouches for an acknowledgement."""

    def is_covered_by(self, older: Breach) -> bool:
        """Whether an older breach was as bad in each way: then this one is no news."""
        return (
            (self.cell, self.origin) == (older.cell, older.origin)
            and self.badness <= older.badness
            and self.has_broken_audit <= older.has_broken_audit
            and self.is_unfounded <= older.is_unfounded
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackBin:
    """How many trials of a cell rolled back by `low_ms` or more, and less than `high_ms`."""

    cell: str
    low_ms: float
    high_ms: float
    trials: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadFigure:
    """A figure that a load beside the ledger measured in a cell's trials, by the load's name for it."""

    cell: str
    name: str
    median: float
    trials: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A trial for the page's worst cases; its record has today's guarantee and axes."""

    record: TrialRecord
    run: RunInfo
    broke_guarantee: bool

    @property
    def evidence(self) -> Path | None:
        """The trial's folder; None if it was not kept, or is elsewhere."""
        return _evidence_in(self.run, self.record.trial)


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """A trial that lost something or broke its guarantee, for a list of all of them."""

    trial: str
    cell: str
    run: RunInfo
    seed: int
    verdict: str
    phase: str
    acknowledged: int
    lost: int
    rollback_ms: float | None
    broke_guarantee: bool
    reason: str
    """The first reason of its verdict."""

    @property
    def has_evidence(self) -> bool:
        """Whether the folder of the trial is still there."""
        return _evidence_in(self.run, self.trial) is not None


def _evidence_in(run: RunInfo, trial: str) -> Path | None:
    try:
        folder = run.layout.evidence_of(trial)
        return folder if folder.is_dir() else None
    except (OSError, ValueError):
        return None
