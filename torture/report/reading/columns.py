"""The columns of the table of trials, in the order of the exports: of which type, and from where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, get_type_hints

from torture.choices.matrix.cells import AXES
from torture.discovery import offered_by_features
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.documents import Document
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import COUNTS
from torture.records.record.trials import Absence, Speed, TrialRecord, Where
from torture.records.scoring.detection import is_at_risk
from torture.report.reading.column import Column, Of, Row, count, flag, hidden, number, text
from torture.report.reading.tally import WORTH

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


_FEATURES: tuple[Mapping[str, Column], ...] = offered_by_features("columns", "COLUMN")
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
    "line_begin": hidden("BIGINT", "line.position"),
    "line_bytes": hidden("BIGINT", lambda row: len(row.line.raw)),
    "trial": text("record.trial"),
    "origin": text("record.origin"),
    "repeats": text("record.repeats"),
    # of a replay or rerun, also where the file leaves it to the run
    "origin_run": text(lambda row: row.record.identity(run=row.run.name).run),
    "cell": text("record.cell"),
    "index": count("trial_index"),
    "seed": Column("UBIGINT", "record.seed"),
    # of the NAS; empty where neither the record nor its run says
    "zfs": text(lambda row: row.record.zfs or row.run.document.zfs),
    # of each machine's kernel; of a record that does not say it, as its run does
    "linux_nas": text(partial(_kernel_of, image="nas")),
    "linux_client": text(partial(_kernel_of, image="client")),
    # empty where neither the record nor its run says; guests of KVM and emulated ones differ in pace
    "accelerator": text(
        lambda row: row.record.where.accelerator or row.run.document.accelerator.kind
    ),
    "guarantee": text("guarantee"),
    "broke_guarantee": flag("kind.broke_guarantee"),
    "verdict": text("kind.verdict"),
    # -1 for inconclusive
    "badness": hidden("INTEGER", lambda row: _BADNESS[row.kind.verdict]),
    "is_loss": hidden("BOOLEAN", "kind.is_loss"),
    "is_empty": hidden("BOOLEAN", "kind.is_empty"),
    "pool_verdict": text("record.judgement.pool"),
    "filesystem_verdict": text("record.judgement.filesystem"),
    "data_verdict": text(f"{_FINDINGS}verdict"),
    "acknowledged": count(f"{_FINDINGS}acknowledged"),
    "acknowledged_before_cut": count(_before_cut),
    "lost": count(f"{_FINDINGS}lost"),
    "rollback_ms": number(
        lambda row: row.record.rollback_ms if _BADNESS[row.kind.verdict] >= 0 else None
    ),
    **{
        _RENAMED.get(name, name): count(_FINDINGS + name)
        for name in COUNTS
        if name not in ("acknowledged", "lost")
    },
    "cut_ms": number("record.cut.t_ms"),
    "cut_aim": text("record.cut.aim"),
    "is_confirmation": flag("kind.is_confirmation"),
    "cut_phase": text("record.cut.phase"),
    # of the disks that may lose something
    "cut_policies": text("record.cut.policies"),
    "audited": count("record.cut.audited.acknowledgements"),
    "audited_completions": count("record.cut.audited.completions"),
    "audited_txgs": count("record.cut.audited.txgs"),
    "audit_broken": count("record.cut.audited.broken"),
    **{
        name: number(f"record.{'speed' if name in Speed.names() else 'absence'}.{name}")
        for name in WORTH
    },
    "acknowledged_in_outage": count("record.absence.acknowledged_in_outage"),
    "offline_ms": number("record.absence.offline_ms"),
    "remedy": text("record.absence.remedy"),
    "load_ms": count(lambda row: row.record.timings.get("load")),
    "trial_ms": count("record.trial_ms"),
    # asked for, in words
    "load_asked": hidden("VARCHAR", "record.load"),
    **{name: column for own in _FEATURES for name, column in own.items()},
    # of a cell that must lose: whether the cut had acknowledged operations at risk
    "is_at_risk": hidden("BOOLEAN", lambda row: is_at_risk(row.record)),
    # what the cut found on the disks; NULL where the record does not say it
    **{f"cut_{name}": hidden("BIGINT", partial(_risk_of, find=_RISKS[name])) for name in _RISKS},
    # whether the pool was administered at the cut, and its outcome afterwards
    "is_administered": hidden("BOOLEAN", lambda row: row.record.administration is not None),
    "administration_moment": hidden("VARCHAR", partial(_of_administration, name="moment")),
    "administration_returned": hidden(
        "BOOLEAN", lambda row: _of_administration(row, name="returned") is not None
    ),
    "administration_outcome": hidden("VARCHAR", "record.judgement.administration"),
    # the promises of the client's disk or mount, as JSON, and the block of the volume
    "advertised": hidden("VARCHAR", lambda row: _as_json(row.record.advertised.client)),
    "volume_block_size": hidden(
        "VARCHAR", lambda row: row.record.advertised.volume.get("physical_block_size")
    ),
    # what loads measured, as JSON
    "figures": hidden("VARCHAR", lambda row: _as_json(row.record.judgement.findings.figures)),
    "fsck": text("record.judgement.fsck"),
    "pool": text("record.judgement.pool_summary"),
    "reasons": text(lambda row: "\n".join(row.record.reasons)),
    "error": text("record.error"),
    "machinery_failed": flag("record.machinery_failed"),
    "has_manifest": flag("record.has_manifest"),
    "schema": count("record.schema"),
}
"""The columns with a place of their own, or a value that is not simply a field's. Each count of
`torture.oracles.verdict.judgement` is one."""
COLUMNS = _NAMED | {name: column for name, column in _plain_fields() if name not in _NAMED}
"""Every column by name; plain fields of the record that are named nowhere come last."""


def _taken(of: Of) -> tuple[str, Callable[[Any], Any]]:
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
