"""A run of one side of a known bug."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fixtures.options import Options
from fixtures.plugin import TERMINAL, begun_campaign
from torture.campaign.progress import Progress
from torture.errors import HarnessError
from torture.images.source_trees import ChosenZfs
from torture.knownbugs.protocol import KnownBug, Side
from torture.plan.draw import draw_trials
from torture.record.trials import TrialRecord
from torture.schedules.fixed import FixedSchedule

_POLL_S = 1.0

CutSide = Callable[[KnownBug, Side, ChosenZfs], tuple[TrialRecord, ...]]


def cut_side(
    config: pytest.Config, options: Options, bug: KnownBug, side: Side, zfs: ChosenZfs
) -> tuple[Path, tuple[TrialRecord, ...]]:
    """The run's folder and records: `--trials` of them, or as many as the bug's prediction says.

    Fails the test when the run cannot go on, or does not come to its end.
    """
    cell = side.chosen_cell
    cuts = bug.cuts if config.getoption("--trials") is None else options.trials
    drawn = draw_trials([cell], trials=cuts, run_seed=options.seed, load_ms=options.load_ms)
    specs = tuple(replace(spec, flush_is_doubted=bug.drops_flushes) for spec in drawn)
    its_own = replace(
        options,
        matrix=None,
        cells=(cell,),
        trials=cuts,
        lab=replace(options.lab, zfs=zfs.version),
        zfs_tree=zfs.tree,
    )
    with begun_campaign(
        config, its_own, FixedSchedule(specs), specs=specs, moves_latest=False
    ) as campaign:
        watched = Progress(campaign, Console(file=TERMINAL))
        end = time.monotonic() + campaign.patience_s
        with watched.shown():
            while time.monotonic() < end:
                watched.beat()
                try:
                    if campaign.wait_for(cell, timeout_s=_POLL_S):
                        return campaign.run.folder, campaign.records
                except HarnessError as error:
                    pytest.fail(f"the run cannot go on: {error}", pytrace=False)
    pytest.fail(f"the trials of {bug.name} did not end", pytrace=False)
