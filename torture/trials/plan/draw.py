"""The trials of a run, and a fault in another cell than its own (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torture.choices.experiments.protocol import Fault
from torture.choices.matrix.cells import WORKLOAD, Cell
from torture.choices.matrix.choices import why_different_there, with_choices
from torture.choices.workloads import with_those_beside
from torture.choices.workloads.protocol import Brought
from torture.facts.evidence.documents import replace
from torture.records.record.specs import TrialSpec, draw_seed
from torture.records.record.trials import Origin
from torture.records.tasks.core_tasks import Cut
from torture.records.tasks.protocol import Task


def draw_trials(
    cells: Sequence[Cell],
    *,
    trials: int,
    run_seed: int,
    load_ms: int,
    brought: Sequence[Brought] = (),
    task: Task = Cut(),  # noqa: B008 - it is frozen
) -> tuple[TrialSpec, ...]:
    """`trials` of each cell, one of each cell first, so that a run stopped early is balanced.

    The same seed draws the same trials, with any selection of other cells. A file in `brought` goes
    to the trials with its load.
    """
    of_cell = {cell: brought_for(cell, brought) for cell in cells} if brought else {}
    return tuple(
        TrialSpec(
            cell=cell,
            index=index,
            seed=draw_seed(run_seed=run_seed, cell=cell, index=index),
            load_ms=load_ms,
            brought=of_cell.get(cell, ()),
            task=task,
        )
        for index in range(trials)
        for cell in cells
    )


def brought_for(cell: Cell, brought: Sequence[Brought]) -> tuple[Brought, ...]:
    """The user's files for the loads of this cell."""
    names = {workload.name for workload in with_those_beside(cell[WORKLOAD])}
    return tuple(one for one in brought if one.load in names)


def draw_planted(
    faults: Sequence[Fault],
    *,
    trials: int,
    run_seed: int,
    load_ms: int,
    task_of: Callable[[Cell], Task] = lambda _cell: Cut(),
) -> tuple[TrialSpec, ...]:
    """`cuts_of` each fault, which is planted in its cell. `task_of`: the task there."""
    cells = {fault.name: Cell.parse(fault.cell) for fault in faults}
    cuts = {fault.name: cuts_of(fault, trials=trials) for fault in faults}
    return tuple(
        TrialSpec(
            cell=cells[fault.name],
            index=index,
            seed=draw_seed(
                run_seed=run_seed, cell=cells[fault.name], index=index, fault=fault.name
            ),
            load_ms=fault.load_ms or load_ms,
            fault=fault.name,
            origin=Origin.PLANTED,
            task=task_of(cells[fault.name]),
        )
        for index in range(max(cuts.values(), default=0))
        for fault in faults
        if index < cuts[fault.name]
    )


def cuts_of(fault: Fault, *, trials: int) -> int:
    """The number of a fault's cuts: so many times its prediction, which chance misses in 5 %."""
    return trials * fault.cuts


def moved(fault: Fault, choices: Mapping[str, str]) -> Fault:
    """The fault in its cell with these choices, by axis; the fault's prediction holds there, too.

    Raises `ValueError` with the reason that it cannot be planted there. Either the cell makes no
    sense, or theory gives the cell a different guarantee, or the fault would be none.
    """
    here = Cell.parse(fault.cell)
    [there] = with_choices([here], choices)
    if why := why_different_there(
        here, there, bound_to=fault.bound_to, amounts_to=fault.amounts_to
    ):
        raise ValueError(f"{fault.name} {why}")
    return replace(fault, cell=there.name)
