"""The README's table of the axes, from their declarations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torture.axes.axis import Axis, Choice
from torture.matrix.axes import AXES


def axes_table() -> str:
    """Markdown: a row an axis, its choices in order, those that a name leaves out in italics."""
    return "\n".join(["| axis | choices |", "| --- | --- |", *_rows()])


def _rows() -> Iterator[str]:
    for axis in AXES.values():
        choices = ", ".join(_in_words(axis, choice) for choice in axis.choices)
        yield f"| {axis.title} | {choices} |"


def _in_words(axis: Axis[Any], choice: Choice[Any]) -> str:
    name = f"*`{choice.name}`*" if choice.name == axis.default else f"`{choice.name}`"
    return f"{name} ({choice.explained})" if choice.explained else name
