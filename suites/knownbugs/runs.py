"""A run of one side of a known bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.options import Options
from fixtures.own_run import run_alone
from torture.choices.knownbugs.protocol import KnownBug, Side
from torture.machines.images.source_trees import ChosenZfs
from torture.records.record.trials import TrialRecord
from torture.trials.plan.draw import draw_trials

CutSide = Callable[[KnownBug, Side, ChosenZfs], tuple[TrialRecord, ...]]


def cut_side(
    config: pytest.Config, options: Options, bug: KnownBug, side: Side, zfs: ChosenZfs
) -> tuple[Path, tuple[TrialRecord, ...]]:
    """The run's folder and records: `--trials` of them, or as many as the bug predicts.

    Fails the test when the run cannot go on, or does not come to its end.
    """
    cuts = bug.cuts if config.getoption("--trials") is None else options.trials
    drawn = draw_trials(
        [side.chosen_cell], trials=cuts, run_seed=options.seed, load_ms=options.load_ms
    )
    specs = tuple(replace(spec, flush_is_doubted=bug.drops_flushes) for spec in drawn)
    run, records = run_alone(config, options, specs, zfs)
    return run.folder, records
