"""The cells in which a fault is the same as in its own cell: its measurements hold there, too.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from torture.choices.matrix.cells import Cell
from torture.choices.matrix.guarantees import guarantee_of


def why_different_there(
    here: Cell, there: Cell, *, bound_to: Collection[str], amounts_to: Mapping[str, str]
) -> str:
    """Why a fault of one cell differs, or is no fault, in the other; empty where it is the same.

    `bound_to` and `amounts_to` are as in `torture.choices.experiments.protocol.Fault`.
    """
    own = here.axes
    anew = {axis for axis, name in there.axes.items() if name != own[axis]}
    if bound := sorted(anew.intersection(bound_to)):
        return f"works only with the {' and '.join(bound)} of {here.name}"
    theory, promised = guarantee_of(here), guarantee_of(there)
    if promised is not theory:
        return f"needs a cell with the guarantee '{theory}', and {there.name} has '{promised}'"
    try:
        weaker = there.but(**amounts_to)
    except ValueError as error:
        return f"cannot be in {there.name}: {error}"
    if amounts_to and guarantee_of(weaker) is promised:
        return f"does not weaken {there.name}: its guarantee stays '{promised}'"
    return ""
