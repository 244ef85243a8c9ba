"""The evidence that a shard of a night keeps, and the age of the newest baseline."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from torture.errors import HarnessError
from torture.records.record.run_layout import EVIDENCE_FOLDER, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.report.night.baseline import read_night


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """The folders of evidence that are left, and those that were removed."""

    trials: int
    size_bytes: int
    removed: int

    def __str__(self) -> str:
        mib = self.size_bytes / 1024**2
        return f"evidence of {self.trials} trials, {mib:.0f} MiB; removed that of {self.removed}"


def trim_evidence(results: Path, *, bytes_max: int) -> Kept:
    """Remove folders of evidence below `results` until the rest fits; records stay.

    Broken guarantees stay longest, then the worst verdicts, then the smallest folders. A CI refuses
    artifacts beyond its limit as a whole, and records must not be among these. Without a run there is
    nothing to do. Raises `HarnessError` when a folder cannot be read or removed.
    """
    kept = size = removed = 0
    try:
        folders = [
            (_rank(records.get(folder.name)), _size_of(folder), folder)
            for file in sorted(results.glob(f"*/{TRIALS_FILE}"))
            if not file.parent.is_symlink()
            for records in [{record.trial: record for record in read_records(file).records}]
            for folder in sorted((file.parent / EVIDENCE_FOLDER).glob("*/"))
        ]
        for _, own, folder in sorted(folders):
            if size + own > bytes_max:
                shutil.rmtree(folder)
                removed += 1
            else:
                size += own
                kept += 1
    except OSError as error:
        raise HarnessError(f"cannot trim {results}: {error}", hint=f"ls -ld {results}") from error
    return Kept(trials=kept, size_bytes=size, removed=removed)


def _rank(record: TrialRecord | None) -> tuple[bool, bool, int]:
    """The first to stay is the least."""
    if record is None:
        return (True, True, 0)
    badness = record.verdict.badness if record.is_conclusive else 0
    return (not record.is_breach, not record.is_conclusive, -badness)


def _size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def warning_of_age(last: Path, *, now: datetime, days: float) -> str:
    """A warning if the newest baseline began more than so many days ago, or is missing; else empty.

    A CI may stop its schedule without a word: GitHub does after 60 days without a commit.
    """
    advice = "is the schedule off, or has each night since failed?"
    try:
        begun = read_night(last).begun
    except (HarnessError, OSError):
        return f"no sound night is remembered: {advice}"
    if begun is None:
        return f"the newest sound night has no date: {advice}"
    if now - begun <= timedelta(days=days):
        return ""
    return f"the newest sound night began on {begun:%Y-%m-%d}, over {days:g} days ago: {advice}"
