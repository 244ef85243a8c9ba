"""Cells with other choices on some axes: the work of `--axis logbias=throughput` (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torture.choices.matrix.axes import AXES
from torture.choices.matrix.cells import Cell
from torture.facts.zfs.versions import ZfsVersion


def parse_choices(texts: Sequence[str]) -> dict[str, str]:
    """Axis to choice, of texts like `logbias=throughput`; raises `ValueError` with valid choices."""
    chosen: dict[str, str] = {}
    for text in texts:
        field, equals, name = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r} is no choice: write an axis and its choice, FIELD=CHOICE")
        if field not in AXES:
            raise ValueError(f"no axis is called {field!r}; there are {', '.join(AXES)}")
        if name not in AXES[field].names:
            known = ", ".join(AXES[field].names)
            raise ValueError(f"{name!r} is no choice of {field}; there are {known}")
        if chosen.get(field, name) != name:
            raise ValueError(
                f"a cell is {chosen[field]!r} or {name!r}, and not both: say one {field}"
            )
        chosen[field] = name
    return chosen


def with_choices(cells: Sequence[Cell], chosen: Mapping[str, str]) -> tuple[Cell, ...]:
    """These cells with these choices, each once, without combinations that make no sense.

    Raises `ValueError` when none is left, with the reason and the possible choices.
    """
    left_out = without_sense(cells, chosen)
    made = {cell.but(**chosen): None for cell in cells if cell not in left_out}
    if cells and not made:
        why = f"{cells[0].name}: {left_out[cells[0]]}"
        raise ValueError(f"{why}; {_alternatives(cells[0], chosen)}")
    return tuple(made)


def without_sense(cells: Sequence[Cell], chosen: Mapping[str, str]) -> dict[Cell, str]:
    """The cells that make no sense with these choices, and why."""
    why: dict[Cell, str] = {}
    for cell in cells:
        try:
            cell.but(**chosen)
        except ValueError as error:
            why[cell] = str(error)
    return why


def unknown_to(version: ZfsVersion, cell: Cell) -> str:
    """The features of a cell that this version of ZFS lacks; empty where it has all."""
    for field in sorted(version.lacks):
        if cell.axes[field] not in ("", AXES[field].default):
            return f"OpenZFS {version.name} has no {field}, so it is {AXES[field].default} there"
    return ""


def _alternatives(cell: Cell, chosen: Mapping[str, str]) -> str:
    """The choices of each of these axes that make sense with this cell."""
    possible = {
        field: [name for name in AXES[field].names if not without_sense([cell], {field: name})]
        for field in chosen
    }
    return "possible there: " + "; ".join(
        f"{field} ({', '.join(names)})" for field, names in possible.items()
    )
