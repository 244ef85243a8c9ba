"""A fault in another cell than its own, as `--axis transport=nvme_tcp` asks of planted ones (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torture.faults.protocol import Fault
from torture.matrix.cells import Cell
from torture.matrix.choices import with_choices
from torture.matrix.guarantees import guarantee_of


def moved(fault: Fault, choices: Mapping[str, str]) -> Fault:
    """The fault in its cell with these choices, by axis; what was predicted of it holds there, too.

    Raises `ValueError` that says why it cannot be planted there: the cell makes no sense, theory
    promises something else of it, or it would be no fault.
    """
    here = Cell.parse(fault.cell)
    [there] = with_choices([here], choices)
    anew = {axis for axis, name in there.axes.items() if name != here.axes[axis]}
    if bound := sorted(anew & fault.bound_to):
        raise ValueError(f"{fault.name} knows one {' and one '.join(bound)}, that of {here.name}")
    promised = guarantee_of(there)
    if promised is not guarantee_of(here):
        raise ValueError(f"{fault.name} is planted where theory says '{guarantee_of(here)}', "
                         f"and of {there.name} it says '{promised}'")  # fmt: skip
    if fault.amounts_to and guarantee_of(there.but(**fault.amounts_to)) is promised:
        raise ValueError(f"{fault.name} takes nothing from {there.name}: '{promised}' all the same")
    return replace(fault, cell=there.name)
