"""Real trials on Dask: two workers against one, and their verdicts against this host's own site.

All runs have the same seeds. A trial beside another shares caches and memory with it, so the summed
time of the trials stands beside the wall time. Their quotient is the engine's own share.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from suites.benchmarks.figures import Figures
from suites.benchmarks.settings import Settings
from suites.selftest.programs.fleet.dask_cluster import WITH_US, Cluster
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Guarantee
from torture.records.record.run_document import LATEST, TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records

pytest.importorskip("distributed", reason="Dask is an extra: tools/run --workers dask")

_SPEEDUP_MIN = 1.8
_SEED = "1701"
_DEADLINE_S = 3000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    """One run of the quick matrix."""

    wall_s: float
    records: dict[str, TrialRecord]

    @property
    def trials_s(self) -> float:
        """The time of the trials alone, in sum."""
        return sum(sum(record.timings.values()) for record in self.records.values()) / 1000

    def differing(self, other: _Run) -> list[TrialRecord]:
        """The trials with another verdict than in the other run."""
        assert self.records.keys() == other.records.keys()
        return [
            record
            for trial, record in self.records.items()
            if record.verdict is not other.records[trial].verdict
        ]


def _run(settings: Settings, *words: str) -> _Run:
    """Play the quick matrix; losses are no failure here, a crash of the suite is."""
    with TemporaryDirectory() as results:
        begun_s = time.monotonic()
        done = subprocess.run(
            [*WITH_US, sys.executable, "-m", "pytest", "suites/powercut", "-q", "-p", "no:cacheprovider",
             "--matrix", str(Matrix.QUICK), "--trials", str(settings.fleet_real_trials),
             "--seed", _SEED, "--results", results, *words],
            cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=_DEADLINE_S, check=False,
        )  # fmt: skip
        wall_s = time.monotonic() - begun_s
        records = read_records(Path(results, LATEST, TRIALS_FILE)).records
    assert len(records) == len(cells_of(Matrix.QUICK)) * settings.fleet_real_trials, done.stdout
    assert not [record.error for record in records if record.error], done.stdout
    return _Run(wall_s=wall_s, records={record.trial: record for record in records})


def _run_on_dask(settings: Settings, *, workers: int) -> _Run:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, Cluster(Path(folder)) as cluster:
        for _ in range(workers):
            cluster.worker(Path(folder), nanny=True)
        return _run(settings, "--workers", f"dask:{cluster.address}")


def test_two_workers_against_one(figures: Figures, settings: Settings) -> None:
    """One worker between two runs with two: a host that slows down or wakes up favours neither."""
    first, one, last = (_run_on_dask(settings, workers=workers) for workers in (2, 1, 2))
    for workers, run in ((2, first), (1, one), (2, last)):
        figures.say(
            f"workers: {workers}; trials: {len(run.records)}",
            f"{run.wall_s:.0f} s; the trials alone {run.trials_s:.0f} s, "
            f"{run.trials_s / run.wall_s / workers:.1%} of the workers' time",
        )
    two_s = (first.wall_s + last.wall_s) / 2
    figures.at_least(
        "two workers against one", [one.wall_s / two_s], _SPEEDUP_MIN, detail="of wall times"
    )


def test_verdicts_are_those_of_this_host(figures: Figures, settings: Settings) -> None:
    """Cells that lose may differ: each trial has its own microseconds, on one site as on two."""
    local, again = (_run(settings, "--jobs", "2") for _ in range(2))
    dask = _run_on_dask(settings, workers=2)
    for what, differing in (
        ("two Dask workers and the local site", dask.differing(local)),
        ("two runs of the local site", again.differing(local)),
    ):
        words = ", ".join(f"{record.cell} {record.verdict}" for record in differing)
        figures.say(f"{what} differ in", f"{len(differing)} of {len(local.records)}: {words}")
    safe = {cell.name for cell in cells_of(Matrix.QUICK) if guarantee_of(cell) is Guarantee.SAFE}
    assert not [record.trial for record in dask.differing(local) if record.cell in safe]
