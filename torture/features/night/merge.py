"""Merges a night: one page and one run of all its shards, compared with the last night."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from torture.errors import HarnessError
from torture.features.night.former_nights import move_baseline, night_before
from torture.features.night.plan import Plan
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials_file import read_records
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.versus import compare_runs
from torture.report.reading.merged_runs import write_merged
from torture.report.reading.runs import find_run, find_runs
from torture.report.reading.store import Store
from torture.report.reading.text import escaped
from torture.report.write import BuiltReport, build_report

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
