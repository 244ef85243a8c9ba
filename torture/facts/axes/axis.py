"""An axis is one declaration: its choices, their words, its default, its place in a cell's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torture.facts.axes.sweeps import Sweep

T = TypeVar("T")

Chosen = Mapping[str, "Choice[Any]"]
"""An axis' field to what was chosen on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice(Generic[T]):
    """One choice on an axis.

    `name` is its part of a cell's name and a pytest mark: an identifier, on no other axis. `words`
    are what a page and a table say, `explained` what docs/axes.md's table adds to the name.
    """

    name: str
    value: T
    """What the engine works with."""
    words: str
    explained: str = ""
    joins: frozenset[Sweep] = frozenset()
    """The sweeps, and so the matrices, that have cells of it."""
    place: int = 1000
    """Where it stands on its axis; equal places are in the order of their names."""


def _always(_chosen: Chosen) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Axis(Generic[T]):
    """One thing that is varied between cells."""

    field: str
    """Its key in records and its column in exports."""
    noun: str
    """What error messages call a choice on it."""
    title: str
    """What the page calls it."""
    place: int
    """Where its part stands in a cell's name, and its column in tables."""
    choices: tuple[Choice[T], ...]
    default: str | None = None
    """The choice that a name means when it says nothing of this axis; a name never says it."""
    is_the_question: bool = False
    """Whether a page says its choice even where it is the same for all."""
    varies_last: bool = False
    """Whether a matrix lists cells that differ here side by side."""
    is_setting: bool = False
    """Whether it is one of many settings, most of them ZFS's: where all have the default a page says
    nothing of it."""
    reads: Callable[[str], Choice[T]] | None = None
    """Makes a choice of any other name, where there are too many to list. Raises `KeyError` for a name of
    none, and `ValueError` with the reason for a bad one."""
    pointless: Callable[[Chosen], str | None] = _always
    """The rule beside the axis: why a choice here means nothing with the other choices ("is ..."), or
    None where it does. Only the default is allowed then, and a record leaves it empty."""

    def choice(self, name: str) -> Choice[T]:
        """The choice of this name; raises `KeyError`, or what `reads` raises."""
        for choice in self.choices:
            if choice.name == name:
                return choice
        if self.reads is not None:
            return self.reads(name)
        raise KeyError(name)

    def has(self, name: str) -> bool:
        """Whether this is a choice's name, if only of a bad one."""
        try:
            self.choice(name)
        except KeyError:
            return False
        except ValueError:
            return True
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The choices' names, in the order of the axis."""
        return tuple(choice.name for choice in self.choices)
