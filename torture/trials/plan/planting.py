"""A fault in another cell than its own, as `--axis transport=nvme_tcp` requests it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torture.choices.faults.protocol import Fault
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.choices import with_choices
from torture.choices.matrix.same_fault import why_different_there


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
