"""A walk around the cut of an earlier trial, as `tools/replay` takes it."""

from __future__ import annotations

from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.features.walk.tasks import WalkAround
from torture.features.walk.walk import why_not_walked
from torture.records.tasks.protocol import Repeat


def _walk_around(states: int, cell: Cell) -> WalkAround:
    if why_not := why_not_walked(cell):
        raise HarnessError(f"{cell.name} is not walked: {why_not}")
    return WalkAround(states=states)


REPEAT = Repeat(
    option="--around",
    words="recover N crash states of the cuts nearest to this one, too",
    task_of=_walk_around,
)
