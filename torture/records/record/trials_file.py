"""The file `trials.jsonl`: appended as trials end, read by the engine, rewritten by a new judgement."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.files import write_whole
from torture.records.record.counting import by_load, latest_judgements, the_one_that_counts
from torture.records.record.lines import OlderSchemaError, UnreadableLineError, read_line
from torture.records.record.run_layout import TRIALS_FILE_BEFORE
from torture.records.record.trials import Identity, Origin, TrialRecord


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
