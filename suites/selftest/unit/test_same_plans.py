"""The same seeds draw the same trials as they always did: an old campaign can be gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torture.axes.sweeps import Matrix
from torture.matrix.cells import Cell, cells_of
from torture.matrix.guarantees import guarantee_of
from torture.nas.pool import pool_disks
from torture.plan.draw import draw_trials
from torture.plan.trial_plan import draw_plan

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "plans"
"""Written by the commit that each is called after, of every fifth trial of its full matrix."""


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RECORDED / "commit-472f8a4.json").read_text())
    return content


@pytest.mark.parametrize("matrix", Matrix)
def test_the_matrices_have_the_same_cells_in_the_same_order(
    matrix: Matrix, before: dict[str, Any]
) -> None:
    assert [cell.name for cell in cells_of(matrix)] == before["matrices"][matrix]


def test_the_cells_guarantee_the_same(before: dict[str, Any]) -> None:
    now = {name: guarantee_of(Cell.parse(name)) for name in before["guarantees"]}
    assert now == before["guarantees"]


def test_the_same_seeds_draw_the_same_trials_cuts_and_survivors(before: dict[str, Any]) -> None:
    drawn = draw_trials(
        cells_of(Matrix.FULL), trials=2, run_seed=before["run_seed"], load_ms=before["load_ms"]
    )
    now = []
    for spec in drawn[::5]:
        plan = draw_plan(spec)
        now.append(
            {
                "trial": spec.trial,
                "seed": spec.seed,
                "cut": plan.cut.as_json(),
                "gone": sorted(plan.gone),
                "survivors": {serial: state.policy for serial, state in plan.survivors.items()},
                "disks": [disk.serial for disk in pool_disks(spec.cell)],
            }
        )
    assert len(now) > 50
    assert now == before["trials"]
