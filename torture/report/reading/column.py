"""A column of the table of trials: of which type, and from where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import Line
from torture.report.reading.runs import RunInfo
from torture.report.reading.tally import TrialKind


class Row(NamedTuple):
    """A record that was read, with the facts for its row of the table."""

    run: RunInfo
    line: Line
    record: TrialRecord
    trial_index: int | None
    guarantee: str
    """Today's of its cell, where that is known."""
    kind: TrialKind


Of = str | Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """`kind`: duckdb's type; `of`: the path of the value in a row, or its function."""

    kind: str
    of: Of
    is_exported: bool = True


text = partial(Column, "VARCHAR")
count = partial(Column, "BIGINT")
flag = partial(Column, "BOOLEAN")
number = partial(Column, "DOUBLE")
hidden = partial(Column, is_exported=False)
