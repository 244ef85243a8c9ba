"""Which trials a run has (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from torture.faults.protocol import Fault
from torture.matrix.cells import Cell
from torture.record.specs import TrialSpec, draw_seed
from torture.record.trials import Origin


def draw_trials(
    cells: Sequence[Cell], *, trials: int, run_seed: int, load_ms: int
) -> tuple[TrialSpec, ...]:
    """`trials` of each cell, one of each cell first, so that a run stopped early is balanced.

    The same seed draws the same trials, whichever other cells are selected.
    """
    return tuple(
        TrialSpec(
            cell=cell,
            index=index,
            seed=draw_seed(run_seed=run_seed, cell=cell, index=index),
            load_ms=load_ms,
        )
        for index in range(trials)
        for cell in cells
    )


def draw_planted(
    faults: Sequence[Fault], *, trials: int, run_seed: int, load_ms: int
) -> tuple[TrialSpec, ...]:
    """The same of faults, each planted in its cell."""
    cells = {fault.name: Cell.parse(fault.cell) for fault in faults}
    return tuple(
        TrialSpec(
            cell=cells[fault.name],
            index=index,
            seed=draw_seed(
                run_seed=run_seed, cell=cells[fault.name], index=index, fault=fault.name
            ),
            load_ms=load_ms,
            fault=fault.name,
            origin=Origin.PLANTED,
        )
        for index in range(trials)
        for fault in faults
    )
