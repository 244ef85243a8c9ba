"""Merges a night: one page and one run of all its shards, compared with the last night.

Former nights: the evidence that their shards keep, and the night to compare with.

That night moves only forward.

The folder of the last night holds the newest baseline, a merged run. Its folder `before` holds the one
before that. So a night that is merged again, after a CI repeated a shard, meets the same baseline as at
its first merge.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from pathlib import Path

from torture.errors import HarnessError
from torture.features.night.plan import Plan
from torture.records.record.run_document import EVIDENCE_FOLDER, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.versus import compare_runs
from torture.report.reading.runs import find_run, find_runs
from torture.report.reading.store import Store, write_merged
from torture.report.reading.text import escaped
from torture.report.write import BuiltReport, build_report


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


RUN = "run"
"""The merged run's folder, beside the page."""

INDEX = "index.html"
"""A copy of the page, under the name that a web server shows first."""

_FORMATS = ("markdown", "csv", "json")
_REPORT_CHARACTERS_MAX = 400_000
"""The longest report within the summary; a step of GitHub Actions may write 1 MiB in all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedNight:
    """The result of a night."""

    page: Path
    summary: str
    """Markdown, for the CI's page of the job."""
    is_worse: bool
    """Whether the night is significantly worse than the last one, or has significantly fewer conclusive
    trials.
    """
    complaints: tuple[str, ...]
    """Trials worse than guaranteed, cells without conclusive trials, missing trials, an unreadable last
    night.
    """

    @property
    def has_failed(self) -> bool:
        """Whether the night needs attention."""
        return self.is_worse or bool(self.complaints)


class Remember(Enum):
    """Which nights become the baseline of the next one; a night with a missing trial never does."""

    NONE = auto()
    SOUND = auto()
    """A night that is not worse than its own baseline. A worse one leaves the baseline where it is."""
    ACCEPTED = auto()
    """Also a worse night."""


def merge_night(
    *, artifacts: Path, plan: Plan | None, last: Path, site: Path, remember: Remember
) -> MergedNight:
    """Build page, exports and merged run of all runs below `artifacts` into `site`.

    `plan` has the trials that must be present. `last` holds the baselines, or nothing yet. Raises
    `HarnessError` when there is no trial, or a file cannot be written.
    """
    found_runs = find_runs(artifacts)
    runs = [run.folder for run in found_runs]
    found = {
        record.trial for run in found_runs for record in read_records(run.layout.trials_file).live
    }
    gaps = () if plan is None else plan.gaps(found)
    complaints = [str(gap) for gap in gaps]
    notes = []
    if plan is not None and (unplanned := plan.unplanned(found)):
        are = "trial is" if unplanned == 1 else "trials are"
        notes.append(f"{unplanned} {are} not in this plan: was the seed the same?")
    merged = site / RUN
    try:
        built = build_report(runs, output=site, formats=_FORMATS)
        shutil.copyfile(built.page, site / INDEX)
        with Store.open(runs) as store:
            write_merged(store, merged)
            alarms = _alarms(cell_figures(store.tallies()))
    except OSError as error:
        raise HarnessError(f"no page in {site}: {error}", hint="df -h") from error
    is_worse, comparison = False, "This is the first night: there is nothing to compare it with."
    try:
        if (baseline := night_before(merged, last)) is not None:
            versus = compare_runs([baseline], [merged], is_subset=plan is not None)
            begun = find_run(baseline / TRIALS_FILE).document.begun or "an unknown time"
            comparison = f"The baseline is the night of {escaped(begun)}.\n\n{versus.as_markdown()}"
            is_worse = versus.has_failed
    except (HarnessError, OSError) as error:
        # a complaint once only: with `remember` the next night has a readable last run
        comparison = "There is no comparison."
        complaints.append(f"last night's run cannot be read: {error}")
    if remember is not Remember.NONE:
        notes += _remembered(
            merged, last, has_gaps=bool(gaps), is_refused=is_worse and remember is Remember.SOUND
        )
    return MergedNight(
        page=built.page,
        summary=_summary(
            built, alarms=alarms, complaints=complaints, notes=notes, comparison=comparison
        ),
        is_worse=is_worse,
        complaints=(*alarms, *complaints),
    )


def _remembered(merged: Path, last: Path, *, has_gaps: bool, is_refused: bool) -> list[str]:
    """Move the baseline, or a note why it stays."""
    if has_gaps:
        return ["This night is no baseline for the next one: trials are missing."]
    if is_refused:
        return [
            "This night is worse, so the baseline stays that of the night before; --accept moves it."
        ]
    if not move_baseline(merged, last):
        return ["The baseline is of a later night, and stays."]
    return []


def _alarms(cells: Sequence[CellFigures]) -> list[str]:
    """The problems of a night by itself, without a comparison."""
    alarms = []
    if broken := sum(cell.broken + cell.broken_surveys for cell in cells):
        names = ", ".join(cell.cell for cell in cells if cell.is_worse)
        were = "trial was" if broken == 1 else "trials were"
        alarms.append(f"{broken} {were} worse than theory guarantees ({names})")
    if silent := [cell.cell for cell in cells if not cell.has_answer]:
        alarms.append(f"No conclusive trial of {', '.join(silent)}")
    return alarms


def _summary(
    built: BuiltReport,
    *,
    alarms: Sequence[str],
    complaints: Sequence[str],
    notes: Sequence[str],
    comparison: str,
) -> str:
    reports = [path.read_text("utf-8") for path in built.exports if path.suffix == ".md"]
    return "\n\n".join(
        [
            *(f"**{escaped(alarm)}**" for alarm in alarms),
            *(f"**Not as planned: {escaped(complaint)}**" for complaint in complaints),
            *(escaped(note) for note in notes),
            *(text for text in reports if len(text) <= _REPORT_CHARACTERS_MAX),
            "## Against last night",
            comparison,
        ]
    )
