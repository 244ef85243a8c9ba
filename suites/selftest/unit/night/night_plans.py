"""A night's plan, small enough to be played, and the trials that it has."""

from __future__ import annotations

from collections.abc import Sequence

from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.features.night.plan import Plan
from torture.trials.plan.draw import draw_trials

CELLS = cells_of(Matrix.QUICK)
TRIALS = 8
SEED = 20260729


def plan_of(shards: int, *, seed: int = SEED) -> Plan:
    return Plan(cells=CELLS, shards=shards, trials=TRIALS, seed=seed)


def names_of(cells: Sequence[Cell], *, trials: int, seed: int) -> set[str]:
    specs = draw_trials(cells, trials=trials, run_seed=seed, load_ms=4000)
    return {spec.trial for spec in specs}
