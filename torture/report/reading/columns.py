"""The columns of the table of trials, in the order of the exports: of which type, and from where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

from torture.choices.matrix.axes import AXES
from torture.facts.evidence.documents import Document
from torture.oracles.verdict.judgement import COUNTS
from torture.records.record.lines import Line, Reading
from torture.records.record.trials import Absence, Speed, TrialRecord
from torture.report.reading.runs import RunInfo
from torture.report.reading.tally import WORTH, TrialKind

_RENAMED = {"foreign": "foreign_content"}
"""A word of SQL is no good name for a column."""
_KINDS: dict[Any, str] = {
    type_or_none: kind
    for plain, kind in ((int, "BIGINT"), (float, "DOUBLE"), (bool, "BOOLEAN"), (str, "VARCHAR"))
    for type_or_none in (plain, plain | None)
}
"""The types of fields that are columns as they are, and duckdb's."""
_BEFORE_AXES = "zfs"
"""The exports have the choices on the axes behind this column."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A record that was read, with the facts for its row of the table."""

    run: RunInfo
    line: Line
    reading: Reading
    guarantee: str
    """Today's of its cell, where that is known."""
    kind: TrialKind

    @property
    def record(self) -> TrialRecord:
        """The record itself."""
        return self.reading.record


@dataclass(frozen=True, slots=True)
class Column:
    """`kind`: duckdb's type."""

    kind: str
    of: Callable[[Row], Any]
    is_exported: bool = True


def _text(of: Callable[[Row], Any]) -> Column:
    return Column("VARCHAR", of)


def _count(of: Callable[[Row], Any]) -> Column:
    return Column("BIGINT", of)


def _flag(of: Callable[[Row], Any]) -> Column:
    return Column("BOOLEAN", of)


def _number(of: Callable[[Row], Any]) -> Column:
    return Column("DOUBLE", of)


def _hidden(kind: str, of: Callable[[Row], Any]) -> Column:
    return Column(kind, of, is_exported=False)


def _count_found(name: str) -> Column:
    return _count(lambda row: getattr(row.record.judgement.findings, name))


def _worth(name: str) -> Column:
    return _number(
        lambda row: getattr(row.record.speed, name, getattr(row.record.absence, name, None))
    )


def _before_cut(row: Row) -> int:
    """Of the acknowledged operations those of the load phase: a client that lives on goes on after it."""
    before = row.record.cut.acknowledged
    return row.record.acknowledged if before is None else min(before, row.record.acknowledged)


def _plain_fields() -> Iterator[tuple[str, Column]]:
    """A column for each number, truth and text of the record, of its speed and of its absence."""
    parts: tuple[tuple[type[Document], Callable[[TrialRecord], Document]], ...] = (
        (TrialRecord, lambda record: record),
        (Speed, lambda record: record.speed),
        (Absence, lambda record: record.absence),
    )
    for document, part in parts:
        types = get_type_hints(document)
        for name in document.names():
            if types[name] in _KINDS:
                yield name, Column(_KINDS[types[name]], partial(_value, part, name))


def _value(part: Callable[[TrialRecord], Document], name: str, row: Row) -> Any:
    return getattr(part(row.record), name)


_NAMED = {
    "line_begin": _hidden("BIGINT", lambda row: row.line.position),
    "line_bytes": _hidden("BIGINT", lambda row: len(row.line.raw)),
    "trial": _text(lambda row: row.record.trial),
    "origin": _text(lambda row: row.record.origin.value),
    "repeats": _text(lambda row: row.record.repeats),
    # of a replay or rerun, also where the file leaves it to the run
    "origin_run": _text(lambda row: row.record.identity(run=row.run.name).run),
    "cell": _text(lambda row: row.record.cell),
    "index": _count(lambda row: row.reading.index),
    "seed": Column("UBIGINT", lambda row: row.record.seed),
    # of the NAS; empty where neither the record nor its run says
    "zfs": _text(lambda row: row.record.zfs or row.run.document.zfs),
    "guarantee": _text(lambda row: row.guarantee),
    "broke_guarantee": _flag(lambda row: row.kind.broke_guarantee),
    "verdict": _text(lambda row: row.record.verdict.value),
    # -1 for inconclusive
    "badness": _hidden(
        "INTEGER", lambda row: row.record.verdict.badness if row.record.is_conclusive else -1
    ),
    "is_loss": _hidden("BOOLEAN", lambda row: row.kind.is_loss),
    "is_empty": _hidden("BOOLEAN", lambda row: row.kind.is_empty),
    "pool_verdict": _text(lambda row: row.record.judgement.pool or ""),
    "filesystem_verdict": _text(lambda row: row.record.judgement.filesystem or ""),
    "data_verdict": _text(lambda row: row.record.judgement.data or ""),
    "acknowledged": _count(lambda row: row.record.acknowledged),
    "acknowledged_before_cut": _count(_before_cut),
    "lost": _count(lambda row: row.record.lost),
    "rollback_ms": _number(
        lambda row: row.record.rollback_ms if row.record.is_conclusive else None
    ),
    **{
        _RENAMED.get(name, name): _count_found(name)
        for name in COUNTS
        if name not in ("acknowledged", "lost")
    },
    "cut_ms": _number(lambda row: row.record.cut.t_ms),
    "cut_aim": _text(lambda row: row.record.cut.aim),
    "is_confirmation": _flag(lambda row: row.kind.is_confirmation),
    "cut_phase": _text(lambda row: row.record.cut.phase),
    # of the disks that may lose something
    "cut_policies": _text(lambda row: row.record.cut.policies),
    "audited": _count(lambda row: row.record.cut.audited.acknowledgements),
    "audited_completions": _count(lambda row: row.record.cut.audited.completions),
    "audited_txgs": _count(lambda row: row.record.cut.audited.txgs),
    "audit_broken": _count(lambda row: row.record.cut.audited.broken),
    **{name: _worth(name) for name in WORTH},
    "acknowledged_in_outage": _count(lambda row: row.record.absence.acknowledged_in_outage),
    "load_ms": _count(lambda row: row.record.timings.get("load")),
    "trial_ms": _count(lambda row: min(sum(row.record.timings.values()), 2**62)),
    # whether the pool was administered at the cut
    "is_administered": _hidden("BOOLEAN", lambda row: row.record.administration is not None),
    # what loads measured, as JSON
    "figures": _hidden("VARCHAR", lambda row: json.dumps(row.record.judgement.findings.figures)),
    "fsck": _text(lambda row: row.record.judgement.fsck),
    "pool": _text(lambda row: row.record.judgement.pool_summary),
    "reasons": _text(lambda row: "\n".join(row.record.reasons)),
    "error": _text(lambda row: row.record.error or ""),
    "machinery_failed": _flag(lambda row: row.record.machinery_failed),
    "has_manifest": _flag(lambda row: row.record.has_manifest),
    "schema": _count(lambda row: row.record.schema),
}
"""The columns with a place of their own, or a value that is not simply a field's. Each count of
`torture.oracles.verdict.judgement` is one."""
COLUMNS = _NAMED | {name: column for name, column in _plain_fields() if name not in _NAMED}
"""Every column by name; plain fields of the record that are named nowhere come last."""


def _exported() -> tuple[str, ...]:
    names = [name for name, column in COLUMNS.items() if column.is_exported]
    place = names.index(_BEFORE_AXES) + 1
    return ("run", *names[:place], *AXES, "axes", *names[place:])


TRIAL_COLUMNS = _exported()
"""Of the exports, in their order, without the schema of these."""
