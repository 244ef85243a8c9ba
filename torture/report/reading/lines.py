"""From a line of `trials.jsonl`, whatever is in it, to a record whose every field has its type.

Figures are never guessed: a line whose trial, cell, verdict, counts or rollback are not what they
should be is no record. Everything else that is wrong is left out of the record, and remarked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from torture.choices.matrix.cells import with_axes_since
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.strict_json import strict_json
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.administered_pool import Administered
from torture.records.record.trials import SCHEMA, SCHEMAS_READ, Origin, TrialRecord
from torture.records.record.worth import Absence, Speed

LINE_BYTES_MAX = 16 * 1024**2
"""A longer line is skipped: it is no record, and memory is bounded by this."""
_NAME_CHARACTERS_MAX = 1000
_SEED_MAX = 2**64 - 1
_COUNT_MAX = 2**63 - 1
_TRIAL = re.compile(r"\.(\d{1,18})-([0-9a-f]{16})")
"""The end of a trial's name: its index and its seed."""


class Odd(StrEnum):
    """What a record can have that a reader should be told."""

    OLDER = "an older schema"
    NEWER = "a newer schema"
    VERDICT = "an unknown verdict"
    MISSING = "a missing figure"
    FIELD = "a field of the wrong type"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Where a line is in its file."""

    number: int
    position: int
    raw: bytes
    """Without its end; empty if it was too long to be read."""
    is_whole: bool
    """Whether a line feed ends it: a run that was stopped while it wrote leaves none."""


class UnreadableLineError(ValueError):
    """A line that is no record; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A record, and what is odd about it, each with the detail that shows it."""

    record: TrialRecord
    index: int | None
    """Place among the trials of its cell, as the trial's name says it."""
    odd: tuple[tuple[Odd, str], ...] = ()


def lines_of(file: Path) -> Iterator[Line]:
    """Every line that is not blank. Raises `OSError`."""
    with file.open("rb") as stream:
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
                yield Line(number=number, position=begin, raw=raw.rstrip(b"\n"), is_whole=is_whole)


def read_line(raw: bytes) -> Reading:
    """The record of a line; raises `UnreadableLineError`."""
    data = _decoded(raw)
    odd: list[tuple[Odd, str]] = []
    trial, cell = (_name(data, field) for field in ("trial", "cell"))
    verdict = _verdict(data, odd)
    named = _TRIAL.search(trial)
    rest = _Rest(data, odd)
    cell, axes = with_axes_since(cell, rest.texts("axes"))
    schema = rest.whole("schema", _COUNT_MAX)
    if schema not in SCHEMAS_READ:
        odd.append(
            (Odd.NEWER if schema is not None and schema > SCHEMA else Odd.OLDER, str(schema))
        )
    seed = rest.whole("seed", _SEED_MAX)
    error = rest.text("error") or None
    if verdict is None:
        error = f"the verdict {_name(data, 'verdict')!r} is unknown to this version"
    record = TrialRecord(
        trial=trial,
        cell=cell,
        axes=axes,
        seed=seed if seed is not None else int(named[2], 16) if named else 0,
        verdict=verdict or Verdict.INCONCLUSIVE,
        guarantee=rest.text("guarantee") or rest.text("promise"),
        origin=_origin(data),
        has_manifest=data.get("has_manifest") is True,
        repeats=rest.text("repeats"),
        origin_run=rest.text("origin_run"),
        cut=CutDocument.from_json(rest.mapping("cut")),
        administration=Administered.from_json(rest.mapping("administration")),
        acknowledged=_count(data, "acknowledged", odd),
        lost=_count(data, "lost", odd),
        verdicts=rest.words("verdicts"),
        found=rest.counts("found"),
        figures=rest.numbers("figures"),
        rollback_ms=_rollback(data),
        speed=Speed.from_json(rest.mapping("speed")),
        absence=Absence.from_json(rest.mapping("absence")),
        fsck=rest.text("fsck"),
        pool=rest.text("pool"),
        reasons=rest.sentences("reasons"),
        timings=rest.counts("timings"),
        error=error,
        zfs=rest.text("zfs"),
        machinery_failed=rest.flag("machinery_failed"),
        schema=schema if schema is not None else 0,
    )
    return Reading(record=record, index=int(named[1]) if named else None, odd=tuple(odd))


def _decoded(raw: bytes) -> dict[str, Any]:
    if not raw:
        raise UnreadableLineError(f"longer than {LINE_BYTES_MAX // 1024**2} MiB")
    try:
        data = strict_json(raw)
    except ValueError as error:
        raise UnreadableLineError(str(error)) from error
    if isinstance(data, dict):
        return data
    raise UnreadableLineError("it is no object")


def _name(data: dict[str, Any], field: str) -> str:
    value = data.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= _NAME_CHARACTERS_MAX:
        raise UnreadableLineError(f"it has no {field}" if value is None else f"{field} is no name")
    return value


def _verdict(data: dict[str, Any], odd: list[tuple[Odd, str]]) -> Verdict | None:
    text = _name(data, "verdict")
    try:
        return Verdict(text)
    except ValueError:
        odd.append((Odd.VERDICT, text))
        return None


def _origin(data: dict[str, Any]) -> Origin:
    """Figures hang on it; records that do not say it are older than anything but live trials."""
    try:
        return Origin(data.get("origin", Origin.LIVE))
    except ValueError as error:
        raise UnreadableLineError("origin is none that is known") from error


def _is_whole(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _count(data: dict[str, Any], field: str, odd: list[tuple[Odd, str]]) -> int:
    if field not in data:
        odd.append((Odd.MISSING, field))
        return 0
    value = data[field]
    if not _is_whole(value, _COUNT_MAX):
        raise UnreadableLineError(f"{field} is no count")
    return int(value)


def _rollback(data: dict[str, Any]) -> float | None:
    value = data.get("rollback_ms")
    if value is None:
        return None
    if _is_whole(value, _COUNT_MAX) or (isinstance(value, float) and value >= 0):
        return float(value)
    raise UnreadableLineError("rollback_ms is no time")


class _Rest:
    """The fields that no figure hangs on: what has the wrong type is left out, and remarked."""

    def __init__(self, data: dict[str, Any], odd: list[tuple[Odd, str]]) -> None:
        self._data = data
        self._odd = odd

    def _wrong(self, field: str) -> None:
        if self._data.get(field) is not None:
            self._odd.append((Odd.FIELD, field))

    def text(self, field: str) -> str:
        value = self._data.get(field)
        if isinstance(value, str):
            return value
        self._wrong(field)
        return ""

    def flag(self, field: str) -> bool:
        value = self._data.get(field)
        if isinstance(value, bool):
            return value
        self._wrong(field)
        return False

    def whole(self, field: str, most: int) -> int | None:
        value = self._data.get(field)
        if _is_whole(value, most):
            return int(self._data[field])
        self._wrong(field)
        return None

    def mapping(self, field: str) -> dict[str, Any]:
        value = self._data.get(field)
        if isinstance(value, dict):
            return value
        self._wrong(field)
        return {}

    def texts(self, field: str) -> dict[str, str]:
        return {
            key: text for key, text in self.words(field, or_none=False).items() if text is not None
        }

    def words(self, field: str, *, or_none: bool = True) -> dict[str, str | None]:
        found = self.mapping(field)
        good = {
            key: word
            for key, word in found.items()
            if isinstance(word, str) or (or_none and word is None)
        }
        if len(good) != len(found):
            self._wrong(field)
        return good

    def counts(self, field: str) -> dict[str, int]:
        found = self.mapping(field)
        good = {
            key: count
            for key, count in found.items()
            if type(count) is int and 0 <= count <= _COUNT_MAX
        }
        if len(good) != len(found):
            self._wrong(field)
        return good

    def numbers(self, field: str) -> dict[str, float]:
        found = self.mapping(field)
        good = {
            key: float(value)
            for key, value in found.items()
            if type(value) in (int, float) and abs(value) <= _COUNT_MAX
        }
        if len(good) != len(found):
            self._wrong(field)
        return good

    def sentences(self, field: str) -> tuple[str, ...]:
        value = self._data.get(field)
        if isinstance(value, list | tuple) and all(isinstance(sentence, str) for sentence in value):
            return tuple(value)
        self._wrong(field)
        return ()
