"""The file `trials.jsonl`: appended as trials end, read by the engine, rewritten by a new judgement.

From a line of `trials.jsonl`, whatever its content, to a record whose every field has its type.

Figures are never guessed. A line is no record if its identity, load, verdict, counts or rollback are
wrong. Any other wrong field is left out of the record, and remarked.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec
from msgspec.structs import fields

from torture.errors import HarnessError
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.evidence.documents import Document, readable, strict_json
from torture.files import write_whole
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Findings, Judgement
from torture.records.record.counting import by_load, latest_judgements, the_one_that_counts
from torture.records.record.run_document import TRIALS_FILE_BEFORE
from torture.records.record.trials import SCHEMA, Identity, Origin, TrialRecord

_LAST_WITH_OLDER_SCHEMAS = "75e50dc5"
"""The last commit that reads records of schemas 1 and 2."""
LINE_BYTES_MAX = 16 * 1024**2
"""A longer line is skipped: it is no record, and memory is bounded by this."""
_BUFFER_BYTES = 1024**2
_DECODER = msgspec.json.Decoder(TrialRecord)
"""Made with this module: two threads that make a type's reader at once crash msgspec."""
_Own = TypeVar("_Own", bound=Document)
_COUNTING: dict[Any, tuple[str, ...]] = {
    TrialRecord: ("seed", "origin", "origin_run", "zfs", "where", "load_ms", "brought", "scored_s"),
    CutDocument: (),
    AuditDocument: ("broken",),
    Judgement: ("findings",),
    Findings: ("rollback_ms",),
}
"""The fields that count, beside those that each record has: no default stands for a wrong one.

The other fields of these documents are left out alone: a wrong one takes no finding with it.
"""
_TRIAL = re.compile(r"\.(\d{1,18})-[0-9a-f]{16}")
"""The end of a trial's name: its index and its seed."""


def index_in(trial: str) -> int | None:
    """The place of a trial among those of its cell, by its name."""
    named = _TRIAL.search(trial)
    return int(named[1]) if named else None


class Odd(StrEnum):
    """The oddities of a record that a reader should see."""

    NEWER = "a newer schema"
    VERDICT = "an unknown verdict"
    FIELD = "a field of the wrong type"


class Line(NamedTuple):
    """The place of a line in its file."""

    number: int
    position: int
    raw: bytes
    """The line without its end; empty if it was too long to be read."""
    is_whole: bool
    """Whether a line feed ends it: a run that was stopped in the middle of a write leaves none."""


class UnreadableLineError(ValueError):
    """A line that is no record; the message says why."""


class OlderSchemaError(Exception):
    """A record of an older schema; the message is that schema. No reader may skip it silently."""

    def of(self, file: Path) -> HarnessError:
        """The refusal of the whole file."""
        return HarnessError(
            f"{file} has records of schema {self}, and this version reads schema {SCHEMA}",
            hint=f"git worktree add ../older {_LAST_WITH_OLDER_SCHEMAS}, and use the tools there",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A record, and its oddities, each with the detail that shows it."""

    record: TrialRecord
    index: int | None
    """Place among the trials of its cell, from the trial's name."""
    odd: tuple[tuple[Odd, str], ...] = ()


def lines_of(file: Path) -> Iterator[Line]:
    """Every line that is not blank. Raises `OSError`."""
    with file.open("rb", buffering=_BUFFER_BYTES) as stream:
        number = position = 0
        while raw := stream.readline(LINE_BYTES_MAX):
            number += 1
            begin, is_whole = position, raw.endswith(b"\n")
            position += len(raw)
            if not is_whole and len(raw) == LINE_BYTES_MAX:
                while rest := stream.readline(LINE_BYTES_MAX):
                    position += len(rest)
                    if rest.endswith(b"\n"):
                        break
                yield Line(number=number, position=begin, raw=b"", is_whole=True)
            elif not raw.isspace():
                yield Line(number, begin, raw.rstrip(b"\n"), is_whole)


def read_line(raw: bytes) -> Reading:
    """The record of a line; raises `UnreadableLineError`, `OlderSchemaError`."""
    if not raw:
        raise UnreadableLineError(f"longer than {LINE_BYTES_MAX // 1024**2} MiB")
    odd: list[tuple[Odd, str]] = []
    try:
        text = readable(raw)
        try:
            record = _DECODER.decode(text)
        except (ValueError, RecursionError):
            record = _part_that_counts(strict_json(text), odd)
    except ValueError as error:
        raise UnreadableLineError(str(error)) from error
    if 0 < record.schema < SCHEMA:
        raise OlderSchemaError(record.schema)
    if record.schema > SCHEMA:
        odd.append((Odd.NEWER, str(record.schema)))
    return Reading(record=record, index=index_in(record.trial), odd=tuple(odd))


def _part_that_counts(data: Any, odd: list[tuple[Odd, str]]) -> TrialRecord:
    """Of a line that is no whole record; another version's verdict counts as inconclusive."""
    if not isinstance(data, dict):
        raise UnreadableLineError("it is not a JSON object")
    schema = data.get("schema")
    if type(schema) is int and 0 < schema < SCHEMA:
        raise OlderSchemaError(schema)
    judgement = data["judgement"] if isinstance(data.get("judgement"), dict) else {}
    verdict = judgement.get("verdict")
    if isinstance(verdict, str) and verdict and verdict not in set(Verdict):
        odd.append((Odd.VERDICT, verdict))
        judgement["verdict"] = Verdict.INCONCLUSIVE.value
        data["error"] = f"the verdict {verdict!r} is unknown to this version"
    return _fitting(TrialRecord, data, odd, "")


def _fitting(cls: type[_Own], data: dict[str, Any], odd: list[tuple[Odd, str]], path: str) -> _Own:
    """Each field alone; only those that count must be there, and right."""
    values: dict[str, Any] = {}
    for own in fields(cls):
        name, place = own.name, path + own.name
        if name not in data:
            if own.required:
                raise UnreadableLineError(f"it has no {place}")
            continue
        try:
            inner = next(
                (kind for kind in (own.type, *get_args(own.type)) if kind in _COUNTING), None
            )
            if inner is not None and isinstance(data[name], dict):
                values[name] = _fitting(inner, data[name], odd, f"{place}.")
            else:
                values[name] = msgspec.convert(data[name], own.type)
        except msgspec.ValidationError as error:
            if own.required or name in _COUNTING[cls]:
                raise UnreadableLineError(f"{place}: {error}") from error
            odd.append((Odd.FIELD, place))
    return cls(**values)


def _line_of(record: TrialRecord) -> str:
    return json.dumps(record.as_json(), separators=(",", ":")) + "\n"


def append_record(path: Path, record: TrialRecord) -> None:
    """Add a line and make it durable; a line that a crash cut off before is closed first."""
    line = _line_of(record)
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """The readable records of a file, each trial once, and the number of unreadable lines."""

    records: tuple[TrialRecord, ...]
    unreadable_lines: int

    @property
    def live(self) -> tuple[TrialRecord, ...]:
        """The run's own trials, without repetitions of an earlier trial."""
        return tuple(record for record in self.records if record.origin == Origin.LIVE)


def read_records(path: Path) -> Records:
    """For every trial the record that counts, in the order of first records; a missing file has none.

    Raises `HarnessError` for a file of an older schema.
    """
    lines = list(_lines_of(path))
    records = _by_trial([record for _, record in lines if record is not None])
    return Records(
        records=tuple(the_one_that_counts(latest_judgements(trial)) for trial in records),
        unreadable_lines=sum(record is None and bool(line.strip()) for line, record in lines),
    )


def _by_trial(records: Sequence[TrialRecord]) -> list[list[TrialRecord]]:
    found: dict[Identity, list[TrialRecord]] = {}
    for record in records:
        found.setdefault(record.identity(), []).append(record)
    return [trial for same in found.values() for trial in by_load(same)]


def _lines_of(path: Path) -> Iterator[tuple[bytes, TrialRecord | None]]:
    """Every line with its end, and its record; None where it has none. A missing file has no line."""
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        try:
            yield line, read_line(line).record
        except UnreadableLineError:
            yield line, None
        except OlderSchemaError as error:
            raise error.of(path) from error


def rewrite_records(path: Path, records: Sequence[TrialRecord]) -> Path | None:
    """Put these records in the places of those that `read_records` gives, in their order.

    A line without a record stays as it is, byte for byte. So do the line of an unchanged record, and
    the other lines of a trial: the number of its tries is not forgotten. The old file is kept beside
    it, under a new name. The name is returned; None where nothing changed. Raises `OSError`.
    """
    lines = list(_lines_of(path))
    content = [line for line, _ in lines]
    trials = _by_trial([record for _, record in lines if record is not None])
    places = {id(record): place for place, (_, record) in enumerate(lines)}
    for own, now in zip(trials, records, strict=True):
        counts = the_one_that_counts(latest_judgements(own))
        if now != counts:
            content[places[id(counts)]] = _line_of(now).encode()
    content = [
        line if number == len(content) or line.endswith((b"\n", b"\r")) else line + b"\n"
        for number, line in enumerate(content, start=1)
    ]
    old = path.read_bytes()
    if (now_all := b"".join(content)) == old:
        return None
    kept = write_whole(_free_name(path.with_name(TRIALS_FILE_BEFORE)), old)
    write_whole(path, now_all)
    return kept


def _free_name(path: Path) -> Path:
    names = itertools.chain(
        [path], (path.with_name(f"{path.name}-{n}") for n in itertools.count(2))
    )
    return next(name for name in names if not name.exists())
