"""The measurements of a run, drawn from its seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torture.choices.matrix.cells import Cell
from torture.choices.workloads.protocol import Brought
from torture.features.speed.tasks import MEASURED, MeasureOrder
from torture.records.record.specs import TrialSpec, draw_seed
from torture.trials.plan.draw import brought_for


def draw_measured(
    orders: Sequence[tuple[Cell, MeasureOrder]], *, run_seed: int, brought: Sequence[Brought] = ()
) -> tuple[TrialSpec, ...]:
    """A measurement for each order, in their order; several may be of one cell.

    `brought` as `draw_trials` takes it.
    """
    seen: Counter[Cell] = Counter()
    specs = []
    for cell, order in orders:
        index = seen[cell]
        seen[cell] += 1
        seed = draw_seed(run_seed=run_seed, cell=cell, index=index, fault=MEASURED)
        specs.append(
            TrialSpec(
                cell=cell,
                index=index,
                seed=seed,
                load_ms=0,
                origin=MEASURED,
                task=order,
                brought=brought_for(cell, brought),
            )
        )
    return tuple(specs)
