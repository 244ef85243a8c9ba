"""The outcome of each administration during which the power was cut: a table in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from torture.choices.administration import AXIS
from torture.choices.administration.protocol import Moment, Outcome
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.guarantees import guarantee_of
from torture.files import write_whole
from torture.records.record.trials import TrialRecord
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.reading.counted import IS_LIVE
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, markdown_table

_NO_POOL = "no pool"
_INCONCLUSIVE = "inconclusive"
_COLUMNS = (*Outcome, _NO_POOL, _INCONCLUSIVE)
_LEGEND = """\
A row is an operation and the planned moment of its power cut. **Returned** counts the cuts at which its
command had returned. **Half**, **no pool** and an operation that was undone although its command had
returned are findings."""


def export_administration(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `administration.md`."""
    records = [
        record
        for _, record in store.lines(only=f"is_administered AND {IS_LIVE}")
        if record.administration is not None and record.administration.name in AXIS.names
    ]
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA} -->"],
        ["# Administration under the cut"],
        [_LEGEND] if records else ["There are no such trials."],
        _table(records),
        _findings(records),
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part) + "\n"
    return (write_whole(folder / "administration.md", text.encode()),)


def _table(records: Sequence[TrialRecord]) -> list[str]:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        done = record.administration
        if done is not None:
            seen = counts.setdefault((done.name, done.moment), Counter())
            seen["cuts"] += 1
            seen["returned"] += done.returned is not None
            seen[_column_of(record, record.judgement.administration)] += 1
    if not counts:
        return []
    head = ["operation", "moment", "cuts", "returned", *_COLUMNS]
    places = {moment.value: place for place, moment in enumerate(Moment)}
    keys = sorted(counts, key=lambda key: (key[0], places.get(key[1], len(places)), key[1]))
    return markdown_table(head, [_values(key, counts[key]) for key in keys], left=2)


def _column_of(record: TrialRecord, outcome: str) -> str:
    if not record.is_conclusive:
        return _INCONCLUSIVE
    return outcome if outcome in set(Outcome) else _NO_POOL


def _values(key: tuple[str, str], seen: Counter[str]) -> list[str]:
    name, moment = key
    words = AXIS.choice(name).words
    columns = ("cuts", "returned", *_COLUMNS)
    return [words, escaped(moment) or "-", *(str(seen[column] or "-") for column in columns)]


def _findings(records: Sequence[TrialRecord]) -> list[str]:
    """The trials that broke their cell's guarantee, with the reasons."""
    return [
        f"- {escaped(record.trial)}: {record.verdict}; "
        + escaped("; ".join((*record.reasons, *record.cut.audited.findings)))
        for record in records
        if record.breaks(guarantee_of(Cell.parse(record.cell)))
    ]


EXPORT = ExportFormat(name="administration", write=export_administration)
