"""The controls: trials whose outcome is known beforehand.

They take minutes in which a test could only wait. So they are played in the background of the tests
that mostly wait themselves, and each is judged by a test of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from torture.choices.matrix.cells import Cell
from torture.facts.zfs.versions import DEFAULT, zfs_version
from torture.features.walk.documents import WalkEngine
from torture.features.walk.draws import draw_walked
from torture.features.walk.engines.recovery_programs import ensure_recovery_programs
from torture.features.walk.tasks import Walk
from torture.machines.lab.lab import LabSettings
from torture.machines.lab.saved_states import warm_directory
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.campaign.campaign import Campaign
from torture.trials.campaign.keeping import EvidencePolicy
from torture.trials.campaign.run import Run
from torture.trials.plan.draw import draw_trials
from torture.trials.workers.local import LocalSite
from torture.trials.workers.protocol import WorkerOrders

SAFE = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
UNSAFE = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
PLAIN = Cell.parse("iscsi-always-noslog-btrfs-bothdie")
WALKED_BOTH = Cell.parse("iscsi-always-volatile-raw-bothdie")
"""Walked by both engines, which have a log device to claim from."""
WALKED_UNSAFE = Cell.parse("nfs4-disabled-noslog-files-bothdie").with_settings(
    {"zfs.zfs_txg_timeout": "1"}
)
"""Its NAS publishes the files of each content, and the client mounts them. With sync=disabled nothing is
written before a transaction group, for which ZFS waits 5 s otherwise."""
WALKED_STATES = {WALKED_BOTH: 16, WALKED_UNSAFE: 4}
"""Too few for cuts amid a recovery, which need a NAS of their own (`suites/sensitivity`)."""
_ENGINES = {WALKED_BOTH: WalkEngine.BOTH, WALKED_UNSAFE: WalkEngine.KERNEL}

_COMING = 3
"""A run's seed whose first cut of `PLAIN` aims at what comes at once, and without flushes, too."""
_LOAD_MS = 2500
_DEADLINE_S = 500
"""For the trials of a cell; those before it are waited for as well."""


def draw(cell: Cell, trials: int = 1, *, run_seed: int = 1) -> tuple[TrialSpec, ...]:
    """The first trials of a cell."""
    return draw_trials([cell], trials=trials, run_seed=run_seed, load_ms=_LOAD_MS)


def _specs() -> list[TrialSpec]:
    faulty = [replace(spec, fault="zfs-nocacheflush") for spec in draw(PLAIN, run_seed=_COMING)]
    longest, *walked = [
        spec
        for cell, states in WALKED_STATES.items()
        for spec in draw_walked(
            [cell],
            recordings=1,
            walk=Walk(states=states, engine=_ENGINES[cell]),
            run_seed=1,
            load_ms=_LOAD_MS,
        )
    ]
    # the longest begins first, or it would end alone; the trial to replay ends before the other walks
    return [longest, *draw(SAFE), *draw(UNSAFE), *faulty, *walked]


class Controls:
    """A campaign of them all, and what a test begins beside it."""

    campaign: Campaign

    def __init__(self, *, scratch: Path, results: Path) -> None:
        self._scratch = scratch
        self._results = results
        self._stack = ExitStack()
        self._begun = 0

    def __enter__(self) -> Self:
        ensure_recovery_programs(zfs_version(DEFAULT), progress=print)
        self.campaign = self.begin(_specs(), jobs=2)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self, specs: Sequence[TrialSpec], *, jobs: int = 1) -> Campaign:
        """Play these too, in a run of their own; returns at once."""
        self._begun += 1
        lab = LabSettings(warm_states=warm_directory())
        scratch = self._scratch / f"controls{self._begun}"
        scratch.mkdir()
        results = self._results / f"results{self._begun}"
        run = Run.begin(results=results, seed=1, lab=lab, options={})
        campaign = Campaign(
            run=run,
            schedule=FixedSchedule(specs),
            site=LocalSite(WorkerOrders(scratch=scratch, run=run, lab=lab)),
            jobs=jobs,
            keep=EvidencePolicy.ALL,
        )
        self._stack.callback(campaign.stop)
        campaign.start()
        return campaign


def records_of(campaign: Campaign, cell: Cell) -> tuple[TrialRecord, ...]:
    """A cell's records, once its trials have ended; none may have failed by the machinery."""
    assert campaign.wait_for(cell, timeout_s=_DEADLINE_S), f"{cell.name} did not end"
    records = campaign.records_of(cell)
    for record in records:
        assert record.error is None, record.error
    return records
