"""The walked recordings of a run, drawn from its seed."""

from __future__ import annotations

from collections.abc import Sequence

from torture.choices.matrix.cells import Cell
from torture.features.walk.tasks import WALKED, Walk
from torture.records.record.specs import TrialSpec, draw_seed


def draw_walked(
    cells: Sequence[Cell], *, recordings: int, walk: Walk, run_seed: int, load_ms: int
) -> tuple[TrialSpec, ...]:
    """`recordings` of each cell, each to be walked. The same seed draws the same for each engine."""
    return tuple(
        TrialSpec(
            cell=cell,
            index=index,
            seed=draw_seed(run_seed=run_seed, cell=cell, index=index, fault=WALKED),
            load_ms=load_ms,
            origin=WALKED,
            task=walk,
        )
        for index in range(recordings)
        for cell in cells
    )
