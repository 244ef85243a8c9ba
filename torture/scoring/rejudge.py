"""Judging an old run again: its evidence, today's verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.evidence.folder import SPEC
from torture.record.run_layout import RunLayout
from torture.record.trials import TrialRecord, read_records
from torture.scoring.score import score


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejudged:
    """Today's records; `changes` are sentences; `kept` counts records whose evidence is gone."""

    records: tuple[TrialRecord, ...]
    changes: tuple[str, ...]
    kept: int


def rejudge(run: Path) -> Rejudged:
    """Judge every trial of a run whose evidence is there; the others keep their record.

    A trial whose machinery failed stays inconclusive: its evidence is of a trial that never ended.
    Raises `HarnessError` when the folder holds no run.
    """
    layout = RunLayout(folder=run)
    old = read_records(layout.trials_file).records
    if not old:
        raise HarnessError(f"no trials in {layout.trials_file}", hint="ls results/")
    records: list[TrialRecord] = []
    changes: list[str] = []
    kept = 0
    for record in old:
        folder = layout.evidence / record.trial
        if record.machinery_failed or not (folder / SPEC).exists():
            kept += not (folder / SPEC).exists()
            records.append(record)
            continue
        now = score(folder, timings=record.timings)
        records.append(now)
        if now.verdict is not record.verdict:
            changes.append(f"{record.trial}: {record.verdict} is {now.verdict} now")
    return Rejudged(records=tuple(records), changes=tuple(changes), kept=kept)
