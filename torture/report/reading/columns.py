"""The columns of the table of trials, in the order of the exports: of which type, and from where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, get_type_hints

from torture.choices.matrix.axes import AXES
from torture.facts.evidence.cut_document import GONE, CutDocument
from torture.facts.evidence.documents import Document
from torture.facts.recording.disks import Persistence
from torture.oracles.verdict.judgement import COUNTS
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.lines import Line
from torture.records.record.trials import Absence, Speed, TrialRecord, Where
from torture.records.scoring.lower_bound import is_at_risk
from torture.records.scoring.walk_in_words import by_library_alone
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


class Row(NamedTuple):
    """A record that was read, with the facts for its row of the table."""

    run: RunInfo
    line: Line
    record: TrialRecord
    trial_index: int | None
    guarantee: str
    """Today's of its cell, where that is known."""
    kind: TrialKind


_Of = str | Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """`kind`: duckdb's type; `of`: the path of the value in a row, or its function."""

    kind: str
    of: _Of
    is_exported: bool = True


_text = partial(Column, "VARCHAR")
_count = partial(Column, "BIGINT")
_flag = partial(Column, "BOOLEAN")
_number = partial(Column, "DOUBLE")
_hidden = partial(Column, is_exported=False)
_FINDINGS = "record.judgement.findings."
_RISKS: dict[str, Callable[[CutDocument], bool | None]] = {
    "at_risk": lambda cut: cut.is_at_risk,
    "unflushed": lambda cut: any(disk.unflushed for disk in cut.disks.values()),
    "in_flight": lambda cut: any(disk.in_flight for disk in cut.disks.values()),
    "empty": lambda cut: cut.is_empty,
}
_BADNESS = {
    verdict: -1 if verdict is Verdict.INCONCLUSIVE else verdict.badness for verdict in Verdict
}


def _run_of_origin(row: Row) -> str:
    return row.record.identity(run=row.run.name).run


def _kernel_of(row: Row, *, image: str) -> str:
    where = row.record.where
    booted = where.linux_nas if image == "nas" else where.linux_client
    info = row.run.document.images.get(image)
    return booted or ("" if info is None else info.packages.get("kernel", ""))


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(dict(values)) if values else "{}"


def _risk_of(row: Row, *, find: Callable[[CutDocument], bool | None]) -> int | None:
    cut = row.record.cut
    return None if cut.is_at_risk is None else bool(find(cut))


def _of_administration(row: Row, *, name: str) -> Any:
    administration = row.record.administration
    return None if administration is None else getattr(administration, name)


def _before_cut(row: Row) -> int:
    """Operations acknowledged before the cut; a client that lives acknowledges more after it."""
    before = row.record.cut.acknowledged
    return row.record.acknowledged if before is None else min(before, row.record.acknowledged)


def _may_be_of_no_cut(row: Row) -> bool:
    """Whether its walk lost something in a state that perhaps no cut leaves.

    Walks of rule 0 dropped completed writes of disks with power-loss protection
    (`torture.facts.states.course.RULE`).
    """
    walk, disks = row.record.walk, row.record.cut.disks.values()
    if walk is None or walk.rule > 0 or not walk.states_lost:
        return False
    left = [disk.persistence for disk in disks if disk.policy != GONE]
    return Persistence.PLP in left or not left


def _plain_fields() -> Iterator[tuple[str, Column]]:
    """A column for each number, truth and text of the record, of its speed and of its absence."""
    parts: tuple[tuple[type[Document], str], ...] = (
        (TrialRecord, "record"),
        (Speed, "record.speed"),
        (Absence, "record.absence"),
        (Where, "record.where"),
    )
    for document, path in parts:
        types = get_type_hints(document)
        for name in document.names():
            if types[name] in _KINDS:
                yield name, Column(_KINDS[types[name]], f"{path}.{name}")


_NAMED = {
    "line_begin": _hidden("BIGINT", "line.position"),
    "line_bytes": _hidden("BIGINT", lambda row: len(row.line.raw)),
    "trial": _text("record.trial"),
    "origin": _text("record.origin"),
    "repeats": _text("record.repeats"),
    # of a replay or rerun, also where the file leaves it to the run
    "origin_run": _text(_run_of_origin),
    "cell": _text("record.cell"),
    "index": _count("trial_index"),
    "seed": Column("UBIGINT", "record.seed"),
    # of the NAS; empty where neither the record nor its run says
    "zfs": _text(lambda row: row.record.zfs or row.run.document.zfs),
    # of each machine's kernel; of a record that does not say it, as its run does
    "linux_nas": _text(partial(_kernel_of, image="nas")),
    "linux_client": _text(partial(_kernel_of, image="client")),
    # empty where neither the record nor its run says; guests of KVM and emulated ones differ in pace
    "accelerator": _text(
        lambda row: row.record.where.accelerator or row.run.document.accelerator.kind
    ),
    "guarantee": _text("guarantee"),
    "broke_guarantee": _flag("kind.broke_guarantee"),
    "verdict": _text("kind.verdict"),
    # -1 for inconclusive
    "badness": _hidden("INTEGER", lambda row: _BADNESS[row.kind.verdict]),
    "is_loss": _hidden("BOOLEAN", "kind.is_loss"),
    "is_empty": _hidden("BOOLEAN", "kind.is_empty"),
    "pool_verdict": _text("record.judgement.pool"),
    "filesystem_verdict": _text("record.judgement.filesystem"),
    "data_verdict": _text(f"{_FINDINGS}verdict"),
    "acknowledged": _count(f"{_FINDINGS}acknowledged"),
    "acknowledged_before_cut": _count(_before_cut),
    "lost": _count(f"{_FINDINGS}lost"),
    "rollback_ms": _number(
        lambda row: row.record.rollback_ms if _BADNESS[row.kind.verdict] >= 0 else None
    ),
    **{
        _RENAMED.get(name, name): _count(_FINDINGS + name)
        for name in COUNTS
        if name not in ("acknowledged", "lost")
    },
    "cut_ms": _number("record.cut.t_ms"),
    "cut_aim": _text("record.cut.aim"),
    "is_confirmation": _flag("kind.is_confirmation"),
    "cut_phase": _text("record.cut.phase"),
    # of the disks that may lose something
    "cut_policies": _text("record.cut.policies"),
    "audited": _count("record.cut.audited.acknowledgements"),
    "audited_completions": _count("record.cut.audited.completions"),
    "audited_txgs": _count("record.cut.audited.txgs"),
    "audit_broken": _count("record.cut.audited.broken"),
    **{
        name: _number(f"record.{'speed' if name in Speed.names() else 'absence'}.{name}")
        for name in WORTH
    },
    "acknowledged_in_outage": _count("record.absence.acknowledged_in_outage"),
    "load_ms": _count(lambda row: row.record.timings.get("load")),
    "trial_ms": _count("record.trial_ms"),
    # asked for, in words
    "load_asked": _hidden("VARCHAR", "record.load"),
    "walked_states": _count(lambda row: row.record.walk and row.record.walk.counted),
    "walked_states_proven": _count(lambda row: row.record.walk and row.record.walk.proven),
    "walked_states_by_library": _count(
        lambda row: row.record.walk and by_library_alone(row.record.walk)
    ),
    "walked_states_lost": _count(lambda row: row.record.walk and row.record.walk.states_lost),
    "walked_perhaps_illegal": _hidden("BOOLEAN", _may_be_of_no_cut),
    "walked_amid_recovery": _hidden(
        "BIGINT", lambda row: row.record.walk and row.record.walk.amid_recovery
    ),
    # of a cell that must lose: whether the cut had acknowledged operations at risk
    "is_at_risk": _hidden("BOOLEAN", lambda row: is_at_risk(row.record)),
    # what the cut found on the disks; NULL where the record does not say it
    **{f"cut_{name}": _hidden("BIGINT", partial(_risk_of, find=_RISKS[name])) for name in _RISKS},
    # whether the pool was administered at the cut, and its outcome afterwards
    "is_administered": _hidden("BOOLEAN", lambda row: row.record.administration is not None),
    "administration_moment": _hidden("VARCHAR", partial(_of_administration, name="moment")),
    "administration_returned": _hidden(
        "BOOLEAN", lambda row: _of_administration(row, name="returned") is not None
    ),
    "administration_outcome": _hidden("VARCHAR", "record.judgement.administration"),
    # the promises of the client's disk or mount, as JSON, and the block of the volume
    "advertised": _hidden("VARCHAR", lambda row: _as_json(row.record.advertised.client)),
    "volume_block_size": _hidden(
        "VARCHAR", lambda row: row.record.advertised.volume.get("physical_block_size")
    ),
    # what loads measured, as JSON
    "figures": _hidden("VARCHAR", lambda row: _as_json(row.record.judgement.findings.figures)),
    "fsck": _text("record.judgement.fsck"),
    "pool": _text("record.judgement.pool_summary"),
    "reasons": _text(lambda row: "\n".join(row.record.reasons)),
    "error": _text("record.error"),
    "machinery_failed": _flag("record.machinery_failed"),
    "has_manifest": _flag("record.has_manifest"),
    "schema": _count("record.schema"),
}
"""The columns with a place of their own, or a value that is not simply a field's. Each count of
`torture.oracles.verdict.judgement` is one."""
COLUMNS = _NAMED | {name: column for name, column in _plain_fields() if name not in _NAMED}
"""Every column by name; plain fields of the record that are named nowhere come last."""


def _taken(of: _Of) -> tuple[str, Callable[[Any], Any]]:
    """The part of a row that has a column's value, and the function that takes it from there."""
    if not isinstance(of, str):
        return "", of
    part, _, name = of.rpartition(".")
    return part, attrgetter(name)


_TAKEN = [_taken(column.of) for column in COLUMNS.values()]


def values_of(rows: Sequence[Row]) -> Iterator[list[Any]]:
    """The values of each column in these rows."""
    parts: dict[str, list[Any]] = {"": list(rows)}
    for part, take in _TAKEN:
        yield list(map(take, _part(parts, part)))


def _part(parts: dict[str, list[Any]], path: str) -> list[Any]:
    """A part of each row, looked up once for all its columns."""
    if path not in parts:
        of, _, name = path.rpartition(".")
        parts[path] = list(map(attrgetter(name), _part(parts, of)))
    return parts[path]


def _exported() -> tuple[str, ...]:
    names = [name for name, column in COLUMNS.items() if column.is_exported]
    place = names.index(_BEFORE_AXES) + 1
    return ("run", *names[:place], *AXES, "axes", *names[place:])


TRIAL_COLUMNS = _exported()
"""Of the exports, in their order, without the schema of these."""
