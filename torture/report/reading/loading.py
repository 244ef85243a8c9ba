"""Loads the runs' files into tables of duckdb: each trial once, each value with its column's type.

This module parses the lines, instead of duckdb's `read_json`. That function neither counts nor names the
lines that it skips. It drops a line with a field of the wrong type, or silently makes the field NULL.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import AXES, Cell
from torture.errors import HarnessError
from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import (
    OlderSchemaError,
    UnreadableLineError,
    lines_of,
    read_line,
)
from torture.report.reading.column import Row
from torture.report.reading.columns import COLUMNS, values_of
from torture.report.reading.remarks import Remark, Remarks
from torture.report.reading.runs import RunInfo
from torture.report.reading.tally import guarantee_in, kind_of

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


_BATCH = 10_000
"""How many rows are put into the table at once."""
_AT_ONCE = 50
"""How many records are held at once: few enough for a processor's cache."""

_TABLE = {
    "place": "BIGINT",  # in all that was read, from the earliest record on
    "source": "INTEGER",  # which run, from 0
    **{name: column.kind for name, column in COLUMNS.items()},
}
_NUMPY = {
    "BIGINT": "int64", "INTEGER": "int32", "UBIGINT": "uint64", "DOUBLE": "float64",
    "BOOLEAN": "bool", "VARCHAR": "object",
}  # fmt: skip
_NONE_IS: dict[str, float | str] = {"DOUBLE": float("nan"), "BIGINT": -1, "VARCHAR": ""}
"""Stands for None in arrays. The numbers are then NULL; such columns have no negative values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellInfo:
    """A cell's name as this version of the suite understands it."""

    axes: dict[str, str]
    guarantee: Guarantee | None
    is_known: bool


def make_tables(sql: duckdb.DuckDBPyConnection) -> None:
    """Create empty tables; `counting_rules` has the views that all others read."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in _TABLE.items())
    axes = ", ".join(f'"{axis}" VARCHAR' for axis in AXES)
    sql.execute(f"CREATE TEMP TABLE records ({columns})")
    sql.execute(f"CREATE TEMP TABLE voided ({columns})")
    sql.execute(f"CREATE TEMP TABLE cells (cell VARCHAR, axes VARCHAR, {axes})")
    sql.execute(f"CREATE TEMP TABLE first_tries ({columns}, counts BIGINT)")
    sql.execute("CREATE TEMP TABLE runs (source INTEGER, run VARCHAR, is_sequential BOOLEAN)")


def load_runs(
    sql: duckdb.DuckDBPyConnection, runs: Sequence[RunInfo], remarks: Remarks
) -> dict[str, CellInfo]:
    """Fill the tables with every readable record; returns the cells by name.

    Raises `HarnessError` when a file cannot be read at all.
    """
    cells: dict[str, CellInfo] = {}
    place = 0
    sql.begin()  # each commit would compress the table
    for source, run in enumerate(runs):
        sql.execute(
            "INSERT INTO runs VALUES (?, ?, ?)", [source, run.name, run.may_have_stopped_early]
        )
        if not run.layout.trials_file.is_file():
            continue
        rows = _rows(run, cells, remarks)
        while batch := _columns_of(islice(rows, _BATCH)):
            count = len(batch[0])
            own = (range(place, place + count), [source] * count)
            fill(sql, "records", _TABLE, (*own, *batch))
            place += count
    fill(
        sql,
        "cells",
        dict.fromkeys(["cell", "axes", *AXES], "VARCHAR"),
        (
            list(cells),
            [json.dumps(info.axes) for info in cells.values()],
            *([info.axes.get(axis, "") for info in cells.values()] for axis in AXES),
        ),
    )
    sql.commit()
    return cells


def _columns_of(rows: Iterator[Row]) -> list[list[Any]]:
    """The values of each column in these rows; no column without a row. Few records are held at once."""
    columns: list[list[Any]] = []
    while few := list(islice(rows, _AT_ONCE)):
        columns = columns or [[] for _ in COLUMNS]
        for column, values in zip(columns, values_of(few), strict=True):
            column += values
    return columns


def fill(
    sql: duckdb.DuckDBPyConnection,
    table: str,
    columns: Mapping[str, str],
    values: Iterable[Sequence[Any]],
) -> None:
    """Add rows to a table: the values of each of these columns (name to type).

    None is NULL, but no text in `VARCHAR`, and not for `BOOLEAN`.
    """
    arrays: dict[str, Any] = {}
    taken: list[str] = []
    constants: list[Any] = []
    for (name, kind), own in zip(columns.items(), values, strict=True):
        # most columns have one value in most batches: an array of it would take far longer
        if arrays and own and own.count(own[0]) == len(own):
            taken.append(f"?::{kind}")
            constants.append("" if own[0] is None and kind == "VARCHAR" else own[0])
            continue
        none_is = _NONE_IS.get(kind)
        filled = [none_is if value is None else value for value in own] if None in own else own
        arrays[name] = numpy.array(filled, dtype=_NUMPY[kind])
        match kind:
            case "DOUBLE":
                taken.append(f'CASE WHEN isnan("{name}") THEN NULL ELSE "{name}" END')
            case "BIGINT":
                taken.append(f'nullif("{name}", -1)')
            case _:
                taken.append(f'"{name}"')
    sql.register("batch", arrays)
    sql.execute(f"INSERT INTO {table} SELECT {', '.join(taken)} FROM batch", constants)
    sql.unregister("batch")


def normalised(record: TrialRecord, cells: dict[str, CellInfo]) -> tuple[CellInfo, str]:
    """The information on a record's cell, and the text of its guarantee; new cells are added."""
    info = cells.get(record.cell)
    if info is None or (not info.is_known and not info.axes and record.axes):
        info = cells[record.cell] = _info(record)
    return info, info.guarantee if info.guarantee is not None else record.guarantee


def _info(record: TrialRecord) -> CellInfo:
    try:
        known = Cell.parse(record.cell)
    except ValueError:
        return CellInfo(axes=record.axes, guarantee=None, is_known=False)
    return CellInfo(axes=known.axes, guarantee=guarantee_of(known), is_known=True)


def _rows(run: RunInfo, cells: dict[str, CellInfo], remarks: Remarks) -> Iterator[Row]:
    """The rows of a run's file; adds remarks about its other lines."""
    try:
        for line in lines_of(run.layout.trials_file):
            try:
                reading = read_line(line.raw)
            except UnreadableLineError as error:
                what = Remark.UNREADABLE if line.is_whole else Remark.CUT_OFF
                remarks.add(run.name, what, line=line.number, example=str(error))
                continue
            for odd, detail in reading.odd:
                remarks.add(run.name, odd, line=line.number, example=detail)
            record = reading.record
            info, guarantee = normalised(record, cells)
            for own in _remarks_on(info, guarantee, record):
                remarks.add(run.name, own, line=line.number, example=record.cell)
            kind = kind_of(record, guarantee)
            yield Row(run, line, record, reading.index, guarantee, kind)
    except OlderSchemaError as error:
        raise error.of(run.layout.trials_file) from error
    except OSError as error:
        raise HarnessError(
            f"{run.layout.trials_file} cannot be read: {error}", hint=f"ls -l {run.folder}"
        ) from error


def _remarks_on(info: CellInfo, guarantee: str, record: TrialRecord) -> tuple[Remark, ...]:
    if info.is_known:
        return () if record.guarantee in ("", guarantee) else (Remark.GUARANTEE,)
    return (Remark.CELL,) if guarantee_in(guarantee) else (Remark.CELL, Remark.NO_GUARANTEE)
