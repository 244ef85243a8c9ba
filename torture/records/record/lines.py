"""From a line of `trials.jsonl`, whatever its content, to a record whose every field has its type.

Figures are never guessed. A line is no record if its trial, cell, verdict, counts or rollback are
wrong. Any other wrong field is left out of the record, and remarked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from torture.errors import HarnessError
from torture.facts.evidence.documents import NAME_CHARACTERS_MAX, RefusedError, read_document
from torture.facts.evidence.exact_documents import document_of, exactly
from torture.facts.evidence.strict_json import has_surrogate, strict_json
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import SCHEMA, TrialRecord

_LAST_WITH_OLDER_SCHEMAS = "75e50dc5"
"""The last commit that reads records of schemas 1 and 2."""
LINE_BYTES_MAX = 16 * 1024**2
"""A longer line is skipped: it is no record, and memory is bounded by this."""
_BUFFER_BYTES = 1024**2
_TRIAL = re.compile(r"\.(\d{1,18})-([0-9a-f]{16})")
"""The end of a trial's name: its index and its seed."""


def index_in(trial: str) -> int | None:
    """The place of a trial among those of its cell, by its name."""
    named = _TRIAL.search(trial)
    return int(named[1]) if named else None


class Odd(StrEnum):
    """The oddities of a record that a reader should see."""

    NEWER = "a newer schema"
    VERDICT = "an unknown verdict"
    MISSING = "a missing figure"
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


class OlderSchemaError(ValueError):
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
    reading = glance(raw)
    return replace(reading, record=document_of(TrialRecord, reading.record))


def glance(raw: bytes) -> Reading:
    """Read a line fast; its record is read-only (`torture.facts.evidence.exact_documents`)."""
    own = None if has_surrogate(raw) else exactly(TrialRecord, raw)
    if own is not None and own.schema == SCHEMA:
        return Reading(record=own, index=index_in(own.trial))
    odd: list[tuple[Odd, str]] = []
    try:
        data = _decoded(raw)
        try:
            read = read_document(TrialRecord, data)
        except RefusedError:
            if not (unknown := _unknown_verdict(data)):
                raise
            odd.append((Odd.VERDICT, unknown))
            data["judgement"] |= {"verdict": Verdict.INCONCLUSIVE.value}
            data["error"] = f"the verdict {unknown!r} is unknown to this version"
            read = read_document(TrialRecord, data)
    except RefusedError as error:
        raise UnreadableLineError(str(error)) from error
    record = read.document
    named = _TRIAL.search(record.trial)
    if "seed" in read.left_out or "seed" not in data:
        record = replace(record, seed=int(named[2], 16) if named else 0)
    if record.schema > SCHEMA:
        odd.append((Odd.NEWER, str(record.schema)))
    odd += [(Odd.MISSING, name) for name in read.missing]
    odd += [(Odd.FIELD, path) for path in read.left_out]
    return Reading(record=record, index=index_in(record.trial), odd=tuple(odd))


def _decoded(raw: bytes) -> dict[str, Any]:
    if not raw:
        raise UnreadableLineError(f"longer than {LINE_BYTES_MAX // 1024**2} MiB")
    try:
        data = strict_json(raw)
    except ValueError as error:
        raise UnreadableLineError(str(error)) from error
    if not isinstance(data, dict):
        raise UnreadableLineError("it is not a JSON object")
    schema = data.get("schema")
    if type(schema) is int and 0 < schema < SCHEMA:
        raise OlderSchemaError(schema)
    return data


def _unknown_verdict(data: dict[str, Any]) -> str:
    """Another version's word for the end of the trial; empty where it is known, or no name at all."""
    judgement = data.get("judgement")
    verdict = judgement.get("verdict") if isinstance(judgement, dict) else None
    is_name = isinstance(verdict, str) and 0 < len(verdict) <= NAME_CHARACTERS_MAX
    return str(verdict) if is_name and verdict not in set(Verdict) else ""
