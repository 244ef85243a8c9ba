"""The matrix in small tables: SLOG against sync, one table for each choice of the other axes.

Sync has the fewest choices, so that its columns fit on a phone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torture.choices.matrix.axes import AXES, DEFAULTS
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.wording import choice_in_words

COLUMNS = "sync"
_ROWS = ("slog", "slog_class")
"""A SLOG's speed is part of its row, so that a pool without SLOG has a row in every table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facet:
    """One table: `title` names its common choices; places without a cell are None."""

    title: str
    columns: tuple[str, ...]
    """Choices of sync."""
    rows: tuple[tuple[str, tuple[CellFigures | None, ...]], ...]
    """A SLOG in words, and a cell for each column."""


def facets_of(cells: Sequence[CellFigures], varying: Sequence[str]) -> tuple[Facet, ...]:
    """A facet for each combination of the other varying axes, in the order the axes list them."""
    others = [axis for axis in varying if axis not in (COLUMNS, *_ROWS)]
    by_facet: dict[tuple[str, ...], list[CellFigures]] = {}
    for figures in cells:
        key = tuple(figures.axes.get(axis) or DEFAULTS.get(axis, "") for axis in others)
        by_facet.setdefault(key, []).append(figures)
    order = sorted(
        by_facet,
        key=lambda key: [_place(axis, choice) for axis, choice in zip(others, key, strict=True)],
    )
    return tuple(_facet(key, by_facet[key]) for key in order)


def _facet(key: tuple[str, ...], cells: Sequence[CellFigures]) -> Facet:
    columns = sorted({_column(figures.axes) for figures in cells})
    rows = sorted({_row(figures.axes) for figures in cells})
    placed = {(_row(figures.axes), _column(figures.axes)): figures for figures in cells}
    return Facet(
        title=", ".join(
            choice_in_words(choice) for choice in key if choice and choice not in DEFAULTS.values()
        ),
        columns=tuple(sync for _, sync in columns),
        rows=tuple(
            (_heading(row), tuple(placed.get((row, column)) for column in columns)) for row in rows
        ),
    )


Place = tuple[int, str]
"""The rank of a choice on its axis, and the choice: sorts in the axis' order."""


def _column(axes: Mapping[str, str]) -> Place:
    return _place(COLUMNS, axes.get(COLUMNS, ""))


def _row(axes: Mapping[str, str]) -> tuple[Place, ...]:
    return tuple(_place(axis, axes.get(axis, "")) for axis in _ROWS)


def _heading(row: tuple[Place, ...]) -> str:
    (_, slog), (_, speed) = row
    usual = speed in ("", DEFAULTS["slog_class"])
    return choice_in_words(slog) + ("" if usual else f" ({speed})")


def _place(axis: str, choice: str) -> Place:
    """The rank of a choice; unknown choices come last, by name."""
    known = list(AXES[axis].names) if axis in AXES else []
    return (known.index(choice) if choice in known else len(known), choice)
