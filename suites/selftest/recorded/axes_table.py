"""The table of the axes in docs/axes.md, from their declarations.

    python -m suites.selftest.recorded.axes_table

prints it; a test compares the page with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torture.choices.matrix.cells import AXES
from torture.facts.axes.axis import Axis, Choice

_EXPLAINED_MAX = 7
"""Another page explains a longer list of choices, which keeps the table's rows readable."""


def axes_table() -> str:
    """Markdown: a row an axis, its choices in order, the choices that a name omits in italics.

    Where `--axis` uses another word than the axis's title, the row states that word, too.
    """
    return "\n".join(["| axis (FIELD) | choices |", "| --- | --- |", *_rows()])


def _rows() -> Iterator[str]:
    for axis in AXES.values():
        choices = ", ".join(_in_words(axis, choice) for choice in axis.choices)
        field = "" if axis.field == axis.title.lower() else f" (`{axis.field}`)"
        yield f"| {axis.title}{field} | {choices} |"


def _in_words(axis: Axis[Any], choice: Choice[Any]) -> str:
    name = f"*`{choice.name}`*" if choice.name == axis.default else f"`{choice.name}`"
    is_explained = choice.explained and len(axis.choices) <= _EXPLAINED_MAX
    return f"{name} ({choice.explained})" if is_explained else name


if __name__ == "__main__":
    print(axes_table())
