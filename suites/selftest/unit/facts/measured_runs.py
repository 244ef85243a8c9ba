"""Folders of runs by which a host's speed is measured."""

from __future__ import annotations

import json
from pathlib import Path

from suites.selftest.unit.made_records import trial_record
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials_file import append_record

CELL = cells_of(Matrix.QUICK)[0]


def make_run(
    results: Path, name: str, *, jobs: object, trials: int, timings: dict[str, int]
) -> Path:
    """A folder of a run with equal trials."""
    folder = results / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"run": name, "options": {"jobs": jobs}}))
    for number in range(trials):
        record = trial_record(
            trial=f"{name}.{number}", cell=CELL.name, axes=CELL.axes, seed=number,
            verdict=Verdict.INTACT, guarantee="safe", timings=timings,
        )  # fmt: skip
        append_record(folder / "trials.jsonl", record)
    return folder
