"""A campaign on Dask itself: its trials a second, its memory, and its needless trials.

The trials need no machines, and leave evidence of realistic size. A host makes some five real ones a
minute, so 50 a second are enough for 600 hosts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from suites.benchmarks.figures import Figures
from suites.benchmarks.settings import MIB, Settings
from suites.selftest.programs.fleet.dask_cluster import Cluster
from suites.selftest.programs.fleet.stand_in_campaign import StandInCampaign
from suites.selftest.unit.fake_workers import specs_of
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.sequential import Until
from torture.oracles.verdict.guarantee import Verdict
from torture.records.schedules.fixed import FixedSchedule
from torture.records.schedules.protocol import Schedule
from torture.records.schedules.until import UntilSchedule
from torture.trials.campaign.keeping import EvidencePolicy

_RATE_MIN = 50
_WORKERS, _WORKERS_OF_SURPLUS = 2, 4
_CELLS = 12
_SURPLUS_MAX = 0.05
_WARM_TRIALS = 1_200
"""By then the campaign has all its threads and buffers."""
_TRIALS_MIN = 4_000
"""Of fewer trials the growth is that of the first ones: 3.4 KB each over 1,200."""
_GROWTH_BYTES_MAX = 2048
"""For each trial after these: 100,000 trials would take 200 MiB."""
_DEADLINE_S = 3000
_POLL_S = 0.05


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _memory_bytes() -> int:
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line
    ]
    return int(line.split()[1]) * 1024


def _wait_until(begun: StandInCampaign, trials: int) -> None:
    end = time.monotonic() + _DEADLINE_S
    while begun.campaign.verdicts.total() < trials:
        assert time.monotonic() < end, begun.site.remarks
        time.sleep(_POLL_S)


@contextmanager
def _begun(folder: Path, schedule: Schedule, *, workers: int) -> Iterator[StandInCampaign]:
    """The campaign over a cluster of its own, under way; it keeps no evidence of sound trials."""
    with Cluster(folder) as cluster:
        for _ in range(workers):
            cluster.worker(folder)
        begun = StandInCampaign(
            folder / "run", address=cluster.address, schedule=schedule, keep=EvidencePolicy.BAD
        )
        try:
            yield begun
        finally:
            begun.campaign.stop()


def test_trials_a_second_and_the_memory_of_a_long_campaign(
    figures: Figures, settings: Settings, folder: Path
) -> None:
    cells = cells_of(Matrix.DEFAULT)[:_CELLS]
    trials = max(_TRIALS_MIN, settings.fleet_trials) // _CELLS * _CELLS
    schedule = FixedSchedule(specs_of(*cells, trials=trials // _CELLS))
    with _begun(folder, schedule, workers=_WORKERS) as begun:
        _wait_until(begun, _WARM_TRIALS)
        warm_s, warm_bytes = time.monotonic(), _memory_bytes()
        _wait_until(begun, trials)
        later_s, later_bytes = time.monotonic() - warm_s, _memory_bytes()
    assert len({record.trial for record in begun.campaign.records}) == trials
    rate = (trials - _WARM_TRIALS) / later_s
    growth_bytes = (later_bytes - warm_bytes) / (trials - _WARM_TRIALS)
    figures.say("trials a second over Dask, with 2 MB of evidence each", f"{rate:.0f}")
    figures.say(
        "memory of the campaign",
        f"{warm_bytes / MIB:.0f} MiB after {_WARM_TRIALS:,} trials, {later_bytes / MIB:.0f} MiB "
        f"after {trials:,}: {growth_bytes:.0f} bytes a trial, bound {_GROWTH_BYTES_MAX}",
    )
    assert rate >= _RATE_MIN
    assert growth_bytes <= _GROWTH_BYTES_MAX


def test_trials_beyond_those_that_answer(figures: Figures, folder: Path) -> None:
    cells = cells_of(Matrix.DEFAULT)[:_CELLS]
    until = Until.parse("upper<0.02")
    schedule = UntilSchedule(specs_of(*cells, trials=2 * until.trials_at_best), until)
    with _begun(folder, schedule, workers=_WORKERS_OF_SURPLUS) as begun:
        for cell in cells:
            assert begun.campaign.wait_for(cell, timeout_s=_DEADLINE_S)
    assert schedule.settled.keys() == set(cells)
    counted = sum(settled.trials for settled in schedule.settled.values())
    played = begun.campaign.verdicts
    assert played.total() == played[Verdict.INTACT]
    surplus = played.total() - counted
    figures.say(f"trials beyond those that answer {until}", f"{surplus} of {played.total():,}")
    assert surplus < _SURPLUS_MAX * played.total()
