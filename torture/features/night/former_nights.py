"""Former nights: the evidence that their shards keep, and the night to compare with.

That night moves only forward.

The folder of the last night holds the newest baseline, a merged run. Its folder `before` holds the one
before that. So a night that is merged again, after a CI repeated a shard, meets the same baseline as at
its first merge.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from torture.errors import HarnessError
from torture.records.record.run_document import EVIDENCE_FOLDER, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.report.reading.runs import find_run


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


BEFORE = "before"


@dataclass(frozen=True, kw_only=True, slots=True)
class Night:
    """A merged night, by its trials: their names have the seeds."""

    folder: Path
    trials: frozenset[str]
    begun: datetime | None

    def is_same(self, other: Night) -> bool:
        """Whether both have a trial in common; another night has another seed."""
        return not self.trials.isdisjoint(other.trials)

    def is_before(self, other: Night) -> bool:
        """Whether it began before the other one, as far as both say it."""
        return self.begun is not None and other.begun is not None and self.begun < other.begun


def read_night(folder: Path) -> Night:
    """The night in a folder. Raises `HarnessError` when there is no run, and `OSError`."""
    run = find_run(folder / TRIALS_FILE)
    trials = frozenset(record.trial for record in read_records(folder / TRIALS_FILE).records)
    return Night(folder=folder, trials=trials, begun=_moment(run.document.begun))


def night_before(tonight: Path, last: Path) -> Path | None:
    """The baseline for tonight: the newest one that is another night and not a later one.

    None where there is none yet. Raises `HarnessError` when a baseline cannot be read, and `OSError`.
    """
    own = read_night(tonight)
    for folder in (last, last / BEFORE):
        if not folder.is_dir() or not any(folder.iterdir()):
            continue
        other = read_night(folder)
        if not other.is_same(own) and not own.is_before(other):
            return folder
    return None


def move_baseline(tonight: Path, last: Path) -> bool:
    """Make tonight the newest baseline; returns False where that is a later night already.

    The same night is replaced, and the night before it stays. Raises `HarnessError` when a file cannot be
    written.
    """
    own, newest = read_night(tonight), _readable(last)
    if newest is not None and own.is_before(newest) and not newest.is_same(own):
        return False
    before = last if newest is not None and not newest.is_same(own) else last / BEFORE
    _put_in_place(tonight, last, before=before if _readable(before) else None)
    return True


def _readable(folder: Path) -> Night | None:
    try:
        return read_night(folder)
    except (HarnessError, OSError):
        return None


def _put_in_place(run: Path, last: Path, *, before: Path | None) -> None:
    """Copy the runs beside `last` first, so that a full disk leaves the old ones unchanged."""
    beside = last.with_name(f".{last.name}.partial")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.copytree(run, beside, ignore=shutil.ignore_patterns(BEFORE))
        if before is not None:
            shutil.copytree(before, beside / BEFORE, ignore=shutil.ignore_patterns(BEFORE))
        if last.exists():
            shutil.rmtree(last)
        beside.rename(last)
    except OSError as error:
        raise HarnessError(f"cannot keep the night in {last}: {error}", hint="df -h") from error


def _moment(begun: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(begun)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
