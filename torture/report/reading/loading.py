"""Loads the runs' files into tables of duckdb: each trial once, each value with its column's type.

This module parses the lines, instead of duckdb's `read_json`. That function neither counts nor names the
lines that it skips. It drops a line with a field of the wrong type, or silently makes the field NULL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import duckdb
import numpy

from torture.choices.matrix.axes import AXES
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.guarantees import guarantee_of
from torture.errors import HarnessError
from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.lines import UnreadableLineError, lines_of, read_line
from torture.records.record.trials import Origin, TrialRecord
from torture.report.reading.columns import COLUMNS, Row
from torture.report.reading.remarks import Remark, Remarks
from torture.report.reading.runs import RunInfo
from torture.report.reading.tally import guarantee_in, kind_of

_BATCH = 5000
"""How many records are loaded at once."""

_TABLE = {
    "place": "BIGINT",  # in all that was read, from the earliest record on
    "source": "INTEGER",  # which run, from 0
    **{name: column.kind for name, column in COLUMNS.items()},
}
_NUMPY = {
    "BIGINT": "int64", "INTEGER": "int32", "UBIGINT": "uint64", "DOUBLE": "float64",
    "BOOLEAN": "bool", "VARCHAR": "object",
}  # fmt: skip
_NONE_IS: dict[str, float] = {"DOUBLE": float("nan"), "BIGINT": -1}
"""Stands for NULL in arrays of numbers; such columns have no negative values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellInfo:
    """A cell's name as this version of the suite understands it."""

    axes: dict[str, str]
    guarantee: Guarantee | None
    is_known: bool


def make_tables(sql: duckdb.DuckDBPyConnection) -> None:
    """Create empty tables; the view `trials` joins them, `live` has the records that figures count."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in _TABLE.items())
    axes = ", ".join(f'"{axis}" VARCHAR' for axis in AXES)
    sql.execute(f"CREATE TEMP TABLE records ({columns})")
    sql.execute(f"CREATE TEMP TABLE cells (cell VARCHAR, axes VARCHAR, {axes})")
    sql.execute("CREATE TEMP TABLE runs (source INTEGER, run VARCHAR, is_sequential BOOLEAN)")
    sql.execute(f"CREATE TEMP VIEW live AS SELECT * FROM records WHERE origin = '{Origin.LIVE}'")
    sql.execute(
        "CREATE TEMP VIEW trials AS SELECT runs.run, records.* EXCLUDE (line_begin, line_bytes), "
        "cells.* EXCLUDE (cell), runs.is_sequential "
        "FROM records JOIN cells USING (cell) JOIN runs USING (source)"
    )


def load_runs(
    sql: duckdb.DuckDBPyConnection, runs: Sequence[RunInfo], remarks: Remarks
) -> dict[str, CellInfo]:
    """Fill the tables with every readable record; returns the cells by name.

    Raises `HarnessError` when a file cannot be read at all.
    """
    cells: dict[str, CellInfo] = {}
    place = 0
    for source, run in enumerate(runs):
        sql.execute(
            "INSERT INTO runs VALUES (?, ?, ?)", [source, run.name, run.may_have_stopped_early]
        )
        if not run.layout.trials_file.is_file():
            continue
        rows = _rows(run, cells, remarks)
        while batch := list(islice(rows, _BATCH)):
            numbered = [(place + number, source, *row) for number, row in enumerate(batch)]
            fill(sql, "records", _TABLE, numbered)
            place += len(batch)
    fill(
        sql,
        "cells",
        dict.fromkeys(["cell", "axes", *AXES], "VARCHAR"),
        [
            (name, json.dumps(info.axes), *(info.axes.get(axis, "") for axis in AXES))
            for name, info in cells.items()
        ],
    )
    return cells


def fill(
    sql: duckdb.DuckDBPyConnection,
    table: str,
    columns: Mapping[str, str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Add rows to a table with these columns (name to type); None is NULL, but not in `BOOLEAN`."""
    if not rows:
        return
    arrays, taken = {}, []
    for (name, kind), values in zip(columns.items(), zip(*rows, strict=True), strict=True):
        none_is = _NONE_IS.get(kind)
        filled = [none_is if value is None else value for value in values]
        arrays[name] = numpy.array(filled, dtype=_NUMPY[kind])
        match kind:
            case "DOUBLE":
                taken.append(f'CASE WHEN isnan("{name}") THEN NULL ELSE "{name}" END')
            case "BIGINT":
                taken.append(f'nullif("{name}", -1)')
            case _:
                taken.append(f'"{name}"')
    sql.register("batch", arrays)
    sql.execute(f"INSERT INTO {table} SELECT {', '.join(taken)} FROM batch")
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


def _rows(run: RunInfo, cells: dict[str, CellInfo], remarks: Remarks) -> Iterator[tuple[Any, ...]]:
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
            row = Row(
                run=run,
                line=line,
                reading=reading,
                guarantee=guarantee,
                kind=kind_of(record, guarantee),
            )
            yield tuple(column.of(row) for column in COLUMNS.values())
    except OSError as error:
        raise HarnessError(
            f"{run.layout.trials_file} cannot be read: {error}", hint=f"ls -l {run.folder}"
        ) from error


def _remarks_on(info: CellInfo, guarantee: str, record: TrialRecord) -> Iterator[Remark]:
    if not info.is_known:
        yield Remark.CELL
        if guarantee_in(guarantee) is None:
            yield Remark.NO_GUARANTEE
    elif record.guarantee not in {"", guarantee}:
        yield Remark.GUARANTEE
