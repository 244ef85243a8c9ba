"""A fault in another cell than its own, as `--axis transport=nvme_tcp` asks of planted ones (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torture.choices.faults.protocol import Fault
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.choices import with_choices
from torture.choices.matrix.same_fault import why_different_there


def moved(fault: Fault, choices: Mapping[str, str]) -> Fault:
    """The fault in its cell with these choices, by axis; what was predicted of it holds there, too.

    Raises `ValueError` that says why it cannot be planted there: the cell makes no sense, theory
    promises something else of it, or it would be no fault.
    """
    here = Cell.parse(fault.cell)
    [there] = with_choices([here], choices)
    if why := why_different_there(
        here, there, bound_to=fault.bound_to, amounts_to=fault.amounts_to
    ):
        raise ValueError(f"{fault.name} {why}")
    return replace(fault, cell=there.name)
