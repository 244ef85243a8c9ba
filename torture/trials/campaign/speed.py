"""The rate at which this host makes cuts, from its former runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torture.records.record.run_document import read_run_document
from torture.records.record.run_layout import RUN_FILE, RunLayout
from torture.records.record.trials_file import read_records

_TRIALS_ENOUGH = 100
_HOUR_MS = 3_600_000
_DAYS_FROM_MINUTES = 3 * 1440


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Cuts an hour, and the number of trials and runs behind this figure."""

    per_hour: float
    trials: int
    runs: int

    def time_for(self, cuts: int) -> str:
        """The time for this number of cuts, e.g. `40 min`, `1 h 57 min`, `12 days`."""
        minutes = math.ceil(cuts / self.per_hour * 60)
        if minutes >= _DAYS_FROM_MINUTES:
            return f"{minutes / 1440:.0f} days"
        return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def measured_speed(results: Path) -> Speed | None:
    """The speed of the newest runs below `results`, of 100 trials or more if there are; else None.

    A trial takes the sum of its stages. A run has as many trials under way as it has jobs. Trials
    without timings (their worker died) and replays do not count.
    """
    spent_ms, trials, runs = 0.0, 0, 0
    for jobs, durations_ms in _newest_first(results):
        spent_ms += sum(durations_ms) / jobs
        trials += len(durations_ms)
        runs += 1
        if trials >= _TRIALS_ENOUGH:
            break
    if spent_ms == 0:
        return None
    return Speed(per_hour=trials / spent_ms * _HOUR_MS, trials=trials, runs=runs)


def _newest_first(results: Path) -> Iterator[tuple[int, list[int]]]:
    """Each run's jobs and its trials' durations; skips folders that are no run."""
    for run_file in sorted(results.glob(f"*/{RUN_FILE}"), reverse=True):
        folder = run_file.parent
        if folder.is_symlink():  # `latest`
            continue
        document = read_run_document(folder)
        if document is None or document.jobs is None:
            continue
        records = read_records(RunLayout(folder=folder).trials_file).live
        durations_ms = [sum(record.timings.values()) for record in records if record.timings]
        if durations_ms:
            yield document.jobs, durations_ms
